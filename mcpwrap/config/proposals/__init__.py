"""Conversion of entries of agents' files into our server definitions: values in, values out."""
