# One Weft on its own instance, without a public address. Its password is a parameter of Systems
# Manager that only the instance reads, so neither the state nor the user data contains it.

data "aws_subnet" "this" {
  id = var.subnet_id
}

data "aws_partition" "this" {}

data "aws_caller_identity" "this" {}

data "aws_region" "this" {}

data "aws_ami" "debian" {
  most_recent = true
  owners      = ["136693071363"]

  filter {
    name   = "name"
    values = ["debian-12-amd64-*"]
  }

  filter {
    name   = "architecture"
    values = ["x86_64"]
  }
}

resource "aws_security_group" "weft" {
  name_prefix = "weft-"
  description = "Clients of Weft"
  vpc_id      = data.aws_subnet.this.vpc_id
  tags        = var.tags

  ingress {
    description = "Clients"
    from_port   = 6379
    to_port     = 6379
    protocol    = "tcp"
    cidr_blocks = var.client_cidr_blocks
  }

  egress {
    description = "Packages, the program and the password"
    from_port   = 443
    to_port     = 443
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }

  egress {
    description = "Packages of Debian"
    from_port   = 80
    to_port     = 80
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "instance" {
  statement {
    actions   = ["s3:GetObject"]
    resources = ["arn:${data.aws_partition.this.partition}:s3:::${var.program_bucket}/${var.program_key}"]
  }

  statement {
    actions   = ["ssm:GetParameter"]
    resources = ["arn:${data.aws_partition.this.partition}:ssm:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:parameter/${trimprefix(var.password_parameter, "/")}"]
  }
}

resource "aws_iam_role" "weft" {
  name_prefix        = "weft-"
  assume_role_policy = data.aws_iam_policy_document.assume.json
  tags               = var.tags
}

resource "aws_iam_role_policy" "weft" {
  name_prefix = "weft-"
  role        = aws_iam_role.weft.id
  policy      = data.aws_iam_policy_document.instance.json
}

resource "aws_iam_instance_profile" "weft" {
  name_prefix = "weft-"
  role        = aws_iam_role.weft.name
  tags        = var.tags
}

resource "aws_ebs_volume" "data" {
  availability_zone = data.aws_subnet.this.availability_zone
  size              = var.data_volume_gib
  type              = "gp3"
  encrypted         = true
  tags              = merge(var.tags, { Name = "weft-data" })
}

resource "aws_instance" "weft" {
  ami                         = data.aws_ami.debian.id
  instance_type               = var.instance_type
  subnet_id                   = var.subnet_id
  vpc_security_group_ids      = [aws_security_group.weft.id]
  iam_instance_profile        = aws_iam_instance_profile.weft.name
  associate_public_ip_address = false
  ebs_optimized               = true
  monitoring                  = true
  tags                        = merge(var.tags, { Name = "weft" })

  user_data_replace_on_change = true
  user_data_base64 = base64gzip(templatefile("${path.module}/user-data.sh.tftpl", {
    region             = data.aws_region.this.name
    volume_id          = aws_ebs_volume.data.id
    program            = "s3://${var.program_bucket}/${var.program_key}"
    program_sha256     = var.program_sha256
    password_parameter = var.password_parameter
    install            = file("${path.module}/../install.sh")
    unit               = file("${path.module}/../systemd/weft.service")
    sysusers           = file("${path.module}/../systemd/weft.sysusers")
  }))

  metadata_options {
    http_endpoint = "enabled"
    http_tokens   = "required"
  }

  root_block_device {
    volume_type = "gp3"
    encrypted   = true
  }

  lifecycle {
    ignore_changes = [ami]
  }
}

resource "aws_volume_attachment" "data" {
  device_name                    = "/dev/sdf"
  volume_id                      = aws_ebs_volume.data.id
  instance_id                    = aws_instance.weft.id
  stop_instance_before_detaching = true
}
