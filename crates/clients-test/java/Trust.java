// The authority that signed the server's certificate, in the forms that the libraries need.

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

record Trust(TrustManagerFactory managers) {
  /** Trusts only the certificate in a PEM file. */
  static Trust of(Path file) throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream pem = Files.newInputStream(file)) {
      CertificateFactory factory = CertificateFactory.getInstance("X.509");
      store.setCertificateEntry("authority", factory.generateCertificate(pem));
    }
    TrustManagerFactory managers =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(store);
    return new Trust(managers);
  }

  SSLSocketFactory sockets() {
    try {
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, managers.getTrustManagers(), null);
      return context.getSocketFactory();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }
}
