#!/usr/bin/env bash
# Lets clients, and the workers that probe, reach the proxies' port. Squid checks the same networks once more.
#   PROJECT=my-project NETWORK=egress CLIENTS=198.51.100.0/24,192.0.2.7/32 ./firewall.sh
set -euo pipefail
: "${PROJECT:?the project of the VMs}"
: "${CLIENTS:?networks of the crawlers and of the workers, with commas}"
network="${NETWORK:-default}"

gcloud compute firewall-rules create egress-proxy-clients \
  --project="$PROJECT" --network="$network" \
  --direction=INGRESS --action=ALLOW --rules=tcp:3128 \
  --source-ranges="$CLIENTS" --target-tags=egress-proxy \
  --description="Clients of the egress proxies"

# A network lets all egress pass unless a rule says otherwise. These VMs have no business within the VPC: should Squid be
# taken over, it still gets nowhere. (DNS and the metadata server are not subject to firewall rules.)
gcloud compute firewall-rules create egress-proxy-no-internal \
  --project="$PROJECT" --network="$network" \
  --direction=EGRESS --action=DENY --rules=all --priority=900 \
  --destination-ranges=10.0.0.0/8,172.16.0.0/12,192.168.0.0/16 --target-tags=egress-proxy \
  --description="Egress proxies reach no private network"
