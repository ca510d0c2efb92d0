# Sums the samples of `perf script --fields comm,ip,sym,dso` by thread and by area. What the kernel does is put down to
# the system call it does it for; everything else to the crate of the function that ran (what is inlined counts for its
# caller).

function area_of_kernel(stack) {
  if (stack ~ /eventfd_|futex/) return "wake-ups"
  if (stack ~ /page_fault|mmap|munmap|madvise/) return "memory pages"
  if (stack ~ /tcp_|inet_|sock_|unix_/) return "sockets"
  if (stack ~ /sys_sendto|sys_recvfrom|sys_sendmsg|sys_recvmsg|sys_accept|sys_connect/) return "sockets"
  if (stack ~ /fsync|fdatasync|ext4|xfs|btrfs|blk_|submit_bio|ovl_/) return "disk"
  if (stack ~ /epoll/) return "epoll"
  if (stack ~ /fdget|sys_readv?[ \t]|sys_writev/) return "sockets"
  if (stack ~ /sys_write|sys_pwrite|sys_read|sys_pread/) return "disk"
  if (stack ~ /schedule|idle/) return "scheduling"
  if (stack ~ /sysvec|irq/) return "interrupts"
  return "kernel, other"
}

function area_of(symbol) {
  if (symbol ~ /[ \t]_?mi_/) return "allocator"
  if (symbol ~ /mem(cpy|move|set|cmp)|bcmp/) return "copying and comparing"
  if (symbol ~ /clock_gettime|vdso/) return "clock"
  if (symbol ~ /sha2|Sha256|sha256|compress256|digest/) return "hashes"
  if (symbol ~ /agentsvc_systems|bevy_ecs/) return "world"
  if (symbol ~ /agentsvc_components/) return "world"
  if (symbol ~ /serde_json|serde_core|serde::|rmp_serde|rmp::|itoa|ryu|zmij|toml/) return "JSON and MessagePack"
  if (symbol ~ /fjall|lsm_tree|lz4|skiplist|xxhash|sfa::|byteview|quick_cache/) return "store engine"
  if (symbol ~ /agentsvc::effects|reqwest|hyper::client|hyper_util::client|url::|idna/) return "model driver"
  if (symbol ~ /hyper|httparse|http::|h2::|http_body/) return "hyper"
  if (symbol ~ /agentsvc_api/) return "api"
  if (symbol ~ /agentsvc::/) return "daemon"
  if (symbol ~ /tokio|mio::|futures|crossbeam|flume|parking_lot/) return "tokio and channels"
  if (symbol ~ /tracing/) return "tracing"
  if (symbol ~ /hashbrown|core::|alloc::|std::/) return "std"
  return "other"
}

BEGIN { RS = ""; FS = "\n" }

{
  thread = $1
  sub(/^[ \t]+/, "", thread); sub(/[ \t]+$/, "", thread)
  sub(/[-_:]?[0-9]+ *$/, "", thread)
  leaf = $2
  if (leaf ~ /\[(kernel|guest\.kernel|unknown)|\.ko\)/ && leaf !~ /\[unknown\] \(\//) area = area_of_kernel($0)
  else area = area_of(leaf)
  count[thread, area]++; threads[thread]++; areas[area]++; all++
}

END {
  if (!all) { print "no samples"; exit 1 }
  printf "%d samples\n", all
  for (thread in threads) if (threads[thread] / all >= 0.01) {
    line = sprintf("%5.1f %%  %-16s", threads[thread] * 100 / all, thread)
    n = 0
    for (area in areas) if (count[thread, area] / all >= 0.005) {
      n++; name[n] = area; share[n] = count[thread, area] * 100 / all
    }
    for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (share[j] > share[i]) {
      t = share[i]; share[i] = share[j]; share[j] = t; t = name[i]; name[i] = name[j]; name[j] = t
    }
    for (i = 1; i <= n; i++) line = line sprintf("%s%s %.1f", i > 1 ? ", " : " ", name[i], share[i])
    print line | "sort -rn"
  }
  close("sort -rn")
  print "all threads:"
  for (area in areas) if (areas[area] / all >= 0.005)
    printf "%5.1f %%  %s\n", areas[area] * 100 / all, area | "sort -rn"
  close("sort -rn")
}
