"""What an agent's file says of a server, made a definition of ours: values in, values out."""
