"""A fabric over the nodes of a Kubernetes cluster, as manifests. Nothing here talks to a cluster."""
