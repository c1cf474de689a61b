"""Do it at scale: the jobs behind the commands, their manifests, and the command line."""
