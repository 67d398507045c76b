"""The Grafana boards, made by code beside the metrics that they show."""
