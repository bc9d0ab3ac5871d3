output "address" {
  description = "Where clients connect, port 6379."
  value       = aws_instance.weft.private_ip
}

output "instance_id" {
  description = "The instance."
  value       = aws_instance.weft.id
}
