#!/bin/bash
# Runs a Kubernetes node. It is to be the first process of new mount and pid namespaces, so that all it makes (containers,
# mounts, the pods' network) is gone the moment it is gone, however it ends. Its argument is the folder that the node
# writes to; node.ts gives it the rest as variables.
set -euo pipefail

node_dir=${1#egress-node=}

# What we mount is seen by kubelet and containerd, and by nobody outside.
mount --make-rprivate /
mount --make-rshared /

# Folders whose paths are compiled into kubelet, containerd and the CNI plugins: what they write there is ours alone, and
# vanishes with us. Our own folder, wherever it is, stays what it is: containers can't be kept on such a layer.
cd "$node_dir"
scratch=$node_dir/scratch
mkdir -p "$scratch"
mount -t tmpfs -o mode=755 tmpfs "$scratch"
for folder in /run /var/log /var/lib; do
  layers="$scratch/${folder//\//.}"
  mkdir -p "$layers/upper" "$layers/work"
  mount -t overlay -o "lowerdir=$folder,upperdir=$layers/upper,workdir=$layers/work" overlay "$folder"
done
mount --no-canonicalize --rbind . "$node_dir"

# kubelet sets some of the kernel's own settings, for good. It may believe that it did.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
  kernel/keys/root_maxbytes; do
  copy="$scratch/${setting//\//.}"
  cat "/proc/sys/$setting" >"$copy"
  mount --bind "$copy" "/proc/sys/$setting"
done

# The pods have a network of their own, behind one link to the host. Addresses and routes at its host end go with it.
mkdir -p /run/netns
ip netns add node
ip link add "$HOST_LINK" type veth peer name uplink netns node
ip addr add "$HOST_ADDRESS/30" dev "$HOST_LINK"
ip link set "$HOST_LINK" up
ip -n node addr add "$NODE_ADDRESS/30" dev uplink
ip -n node link set lo up
ip -n node link set uplink up
ip -n node route add default via "$HOST_ADDRESS"
ip route add "$POD_NETWORK" via "$NODE_ADDRESS"

nsenter --net=/run/netns/node containerd --config "$CONTAINERD_CONFIG" &
ctr=(ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io)
until "${ctr[@]}" version >/dev/null 2>&1; do
  kill -0 $!
  sleep 0.1
done
for image in $IMAGES; do
  "${ctr[@]}" images list --quiet | grep --quiet --line-regexp --fixed-strings "$image" ||
    "${ctr[@]}" images import "$IMAGE_ARCHIVE"
done

"$KUBELET" --config "$KUBELET_CONFIG" --kubeconfig "$KUBECONFIG" --root-dir "$KUBELET_STATE" \
  --cert-dir "$KUBELET_STATE/pki" --hostname-override "$NODE_NAME" --node-ip "$HOST_ADDRESS" &

# Neither is of use without the other. Orphans of the containers come to us, and are reaped while we wait.
wait -n
