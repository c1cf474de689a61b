"""Do it at scale: jobs, workers, a ledger of what is finished, folders and their manifests."""
