#!/bin/sh
# Installs Weft as a service on a host with systemd, as root:
#
#     deploy/install.sh target/release/weft
#
# Installs the program, its user and the unit, and a configuration for this host's processors and
# memory unless there is one. Changes the host's settings by `weft tune --apply`, and starts the
# service. With DESTDIR it only copies the files there.
set -eu

program=${1:?usage: install.sh PROGRAM}
here=$(dirname "$0")
root=${DESTDIR:-}

install -D -m 755 "$program" "$root/usr/local/bin/weft"
install -D -m 644 "$here/systemd/weft.service" "$root/etc/systemd/system/weft.service"
install -D -m 644 "$here/systemd/weft.sysusers" "$root/usr/lib/sysusers.d/weft.conf"
install -d -m 755 "$root/etc/weft" "$root/etc/weft/conf.d"
if [ ! -e "$root/etc/weft/weft.conf" ]; then
  "$root/usr/local/bin/weft" tune --config >"$root/etc/weft/weft.conf"
fi
[ -z "$root" ] || exit 0

systemd-sysusers
# It has passwords: only the server may read it.
chgrp -R weft /etc/weft/conf.d
chmod -R u=rwX,g=rX,o= /etc/weft/conf.d
# It reports the settings that it cannot change; the server starts anyway.
weft tune --apply || true
systemctl daemon-reload
systemctl enable weft.service
systemctl restart weft.service
