"""The Grafana boards of `deploy/grafana`, made by code beside the metrics that they show."""
