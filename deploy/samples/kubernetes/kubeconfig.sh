#!/usr/bin/env bash
# Prints a kubeconfig for the cluster that kubectl talks to, with the rights of cluster.yaml's service account and no others.
# Its token is good until the Secret that holds it is deleted.
#   deploy/samples/kubernetes/kubeconfig.sh > kubeconfig
set -euo pipefail
namespace=egress-proxies
account=egress-proxy-orchestrator

kubectl apply -f - >&2 <<EOF
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata:
  name: $account
  namespace: $namespace
  annotations:
    kubernetes.io/service-account.name: $account
EOF
kubectl wait --namespace=$namespace "secret/$account" --for=jsonpath='{.data.token}' --timeout=30s >&2

token=$(kubectl get secret --namespace=$namespace $account --output=go-template='{{.data.token | base64decode}}')
cluster() { kubectl config view --minify --raw --flatten --output=jsonpath="{.clusters[0].cluster.$1}"; }

cat <<EOF
apiVersion: v1
kind: Config
clusters:
  - name: pods
    cluster:
      server: $(cluster server)
      certificate-authority-data: $(cluster certificate-authority-data)
users:
  - name: $account
    user:
      token: $token
contexts:
  - name: pods
    context: { cluster: pods, user: $account, namespace: $namespace }
current-context: pods
EOF
