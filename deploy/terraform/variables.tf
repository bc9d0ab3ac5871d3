variable "subnet_id" {
  description = "Subnet of the instance."
  type        = string
}

variable "client_cidr_blocks" {
  description = "Networks whose clients may connect."
  type        = list(string)

  validation {
    condition     = !contains(var.client_cidr_blocks, "0.0.0.0/0")
    error_message = "The port must not be open to everyone."
  }
}

variable "program_bucket" {
  description = "S3 bucket that has the program, built by `cargo build --release --package weft`."
  type        = string
}

variable "program_key" {
  description = "Key of the program in the bucket."
  type        = string
  default     = "weft"
}

variable "program_sha256" {
  description = "SHA-256 of the program in hexadecimal; a different program is not installed."
  type        = string

  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.program_sha256))
    error_message = "A SHA-256 has 64 lower-case hexadecimal digits."
  }
}

variable "password_parameter" {
  description = "Name of the SecureString parameter of Systems Manager that has the password."
  type        = string
}

variable "instance_type" {
  description = "Type of the instance; the default has 16 processors and 32 GiB of memory. The configuration follows the type."
  type        = string
  default     = "c6i.4xlarge"
}

variable "data_volume_gib" {
  description = "Size of the volume for append-only and RDB files. A rewrite needs up to three times maxmemory."
  type        = number
  default     = 80
}

variable "tags" {
  description = "Tags of all resources."
  type        = map(string)
  default     = {}
}
