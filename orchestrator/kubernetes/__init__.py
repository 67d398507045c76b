"""A fabric over the nodes of a Kubernetes cluster, as manifests: nothing here talks to a cluster."""
