/* SPDX-License-Identifier: BSD-3-Clause */
/* All bounds of the server, each with the calculation behind it. */
#pragma once

/* Packets per rx or tx burst. 32 fills a cache-resident batch; more only adds latency. */
#define NJ_BURST_MAX 32

/* Shards of one process. A steering ring exists for each ordered pair, so this bounds n*(n-1). */
#define NJ_SHARDS_MAX 64

/* MiB of the EAL's memory that an lcore needs: both pools of dpdk/port.c (38 MiB for 16 Ki mbufs)
 * and the EAL's share; with --no-huge, 195 do. */
#define NJ_LCORE_EAL_MIB       200u
/* The same with jumbo frames. */
#define NJ_LCORE_EAL_JUMBO_MIB 300u

/* Bounds of the MTU, in bytes of an IP packet: the minimum of IPv6 (RFC 8200 5), and jumbo frames
 * as most switches and NICs support them. */
#define NJ_MTU_MIN 1280u
#define NJ_MTU_MAX 9000u

/* Descriptors of a device's receive or transmit queue. */
#define NJ_RING_MIN     64u
#define NJ_RING_DEFAULT 1024u
#define NJ_RING_MAX     8192u

/* Bytes a connection may hold between HTTP and the wire, unsent plus unacknowledged: two
 * congestion windows, at least MIN and at most MAX. So a peer that acknowledges nothing pins MIN,
 * and 4 MiB carry 320 Mbit/s over 100 ms. */
#define NJ_SENDQ_BYTES_MIN (64u * 1024u)
#define NJ_SENDQ_BYTES_MAX (4u * 1024u * 1024u)

/* Bytes of a response that a peer must acknowledge per send_timeout, even if the minimum rate is
 * 0. A single byte now and then does not keep a stream open. */
#define NJ_SEND_BYTES_MIN 4096u

/* Default minimum rate of a request body in bytes per second, averaged over body_timeout. A GSM
 * link of 9,600 bit/s carries twice as much. */
#define NJ_MIN_UPLOAD_RATE 500u
/* Default time from a request to the end of its body: 16 MiB (NJ_REQUEST_BODY_BYTES) at 37
 * kbit/s. */
#define NJ_BODY_DEADLINE_S 3600u

/* Receive window of one connection, and the most out-of-order data held for it. Each held mbuf
 * pins 2 KiB of pool whatever it carries, so the count is bounded too: 256 one-byte segments. */
#define NJ_RECV_WINDOW_BYTES (256u * 1024u)
#define NJ_RECV_MBUFS_MAX    256u

/* HTTP/2 receive windows if request bodies are read: bytes that a peer may send before the reader
 * consumes them. A window is reopened when half of it was consumed. So a stream needs twice the
 * data of one TCP round trip for TCP alone to set the pace: 256 KiB per round trip, 100 Mbit/s
 * over 20 ms and 20 Mbit/s over 100 ms. The connection window has room for two such streams, so
 * that a stalled reader stops only its own stream. It also bounds the memory that a peer can pin
 * with one connection, with any number of streams. */
#define NJ_H2_STREAM_WINDOW_BYTES (2u * NJ_RECV_WINDOW_BYTES)
#define NJ_H2_CONN_WINDOW_BYTES   (2u * NJ_H2_STREAM_WINDOW_BYTES)
/* The connection window if handlers read bodies: the windows of all its streams, 64 MiB. A request
 * may wait for a stack until others are done, and its unread body must not keep bytes from those.
 * The memory it can pin is bounded by NJ_BLOCKS_*. */
#define NJ_H2_ROUTES_WINDOW_BYTES (128u * NJ_H2_STREAM_WINDOW_BYTES)

/* A payload of up to this many bytes is copied to the end of the mbuf before it, if both are held
 * and it fits: 256 bytes cost about four cache lines to copy and would pin 2 KiB. */
#define NJ_RECV_COALESCE_BYTES 256u

/* Runs of the scoreboard (tcp/loss/scoreboard.h, 64 bytes each): per connection, for 4 MiB in
 * flight in bursts of two segments; per shard, 4 MiB of memory that connections share. An ACK with
 * SACK blocks walks over the runs of its connection once, which takes 12 us with 2,000 of them
 * scattered over memory, and once more if it reveals a loss. */
#define NJ_SENT_RUNS_MAX      2048u
#define NJ_SENT_RUNS_SHARD    65536u
/* Runs reserved for each connection: three bursts in flight, a hole, the data after it, and the
 * three that one more SACK option may need temporarily. 512 bytes per connection, touched when
 * used. */
#define NJ_SENT_RUNS_RESERVED 8u
/* A connection may hold one in this many of the remaining shared runs. k connections at their
 * maximum leave SHARD * 4 / (k + 4): 3,855 for 64 of them, of which the next one may have 771. */
#define NJ_SENT_RUNS_DIVISOR  4u
/* New data leaves this many of a connection's runs for SACKs: a block within a run needs two. */
#define NJ_SENT_RUNS_SPARE    3u

/* Neighbours per shard, a half for each of ARP and NDP, so that a flood of one family does not
 * evict the other's; and packets that wait for one reply. */
#define NJ_NEIGH_MAX         512u
#define NJ_NEIGH_PENDING_MAX 4u

/* Neighbours with a configured MAC address. They are never evicted from the table, so there are
 * fewer than the 8 slots that an address can occupy. */
#define NJ_NEIGH_FIXED_MAX 7u

/* Static routes of a port. Each packet that differs from the previous one is compared with all. */
#define NJ_IP_ROUTES_MAX 16u

/* Unsolicited neighbours (unknown sources) that are being resolved, and resolutions started per
 * second, of each family: packets from spoofed addresses of the link trigger them. 48 slots are 192
 * waiting packets and less than a fifth of the table. While all slots are in use, a new neighbour
 * takes that of the one that has not replied for longest, if it was queried NJ_NEIGH_REPLY_WAIT
 * ago: present addresses reply within milliseconds. So the rate bounds them, with bursts of as
 * many. */
#define NJ_NEIGH_UNSOLICITED_MAX   48u
#define NJ_NEIGH_UNSOLICITED_PER_S 128u
#define NJ_NEIGH_REPLY_WAIT        (200 * NJ_MS)

/* Local ports of active connections, above those of services (RFC 6335 6). A power of two, so that
 * a counter modulo 2^32 wraps evenly. A search tries each port at most once: one in n_shards
 * steers to this shard, so a shard can have 32,768 / n_shards connections to one remote port. */
#define NJ_ACTIVE_PORT_MIN 32768u
#define NJ_ACTIVE_PORTS    32768u

/* Threads for OS_BLOCKING tasks. */
#define NJ_WORKERS_MAX 32u

/* Tasks of one lcore and kind in its ring, for each worker without a long task: the number that
 * may precede a task there, and the number that one poll of the lcore can collect. A larger number
 * covers longer times between polls, but delays the first task of another client. */
#define NJ_WORKER_DEPTH 8u

/* Disk reads in progress, of all lcores: enough to keep an array of SSDs busy. One client may have
 * half of them, and readahead without a waiting request a quarter, so that others are served if
 * all of these are stuck. With 256 KiB each these are 16 MiB. */
#define NJ_FILE_READS_MAX        64u
#define NJ_FILE_READS_CLIENT_MAX 32u
#define NJ_FILE_READS_AHEAD_MAX  16u

/* Only tasks of classes whose recent tasks took at most this long may queue in the ring behind
 * running tasks: a worker runs eight tasks of that length in 1 ms. */
#define NJ_WORKER_SHORT_TASK_NS (125u * 1000u)
/* Tasks of classes whose recent tasks took longer than this, or that are unknown, never have all
 * workers while several clients are there: a pause that users notice. */
#define NJ_WORKER_SLOW_TASK_NS  (100u * 1000u * 1000u)

/* Handlers of one connection that run or wait, including those of closed streams: as many as its
 * open streams (SETTINGS_MAX_CONCURRENT_STREAMS). A further request is refused with
 * REFUSED_STREAM, as for a stream beyond that setting (RFC 9113 5.1.2): it was not processed, and
 * the client may retry it (8.7). */
#define NJ_CONN_TASKS_MAX 128u

/* File operations that run at once, each on its own thread. */
#define NJ_FILE_TASKS_MAX 4u

/* OS_BLOCKING tasks of one lcore that run or wait; further ones are rejected (503). At 1 ms each
 * and four workers the last one starts after 256 ms. */
#define NJ_TASKS_OUT_MAX 1024u

/* Number of connections per client up to which no idle, or no active, connection is evicted from a
 * nearly full table. A browser has one or two. Clients are identified by a hash with as many
 * values as there are slots. So the probability that eight clients with one connection each share
 * a value is 1 in 100,000, for sixteen 2e-14 (Poisson with mean 1). */
#define NJ_SHARE_IDLE_MIN 8u
#define NJ_SHARE_BUSY_MIN 16u

/* A client may hold this many times the rest of each of the pools below: one client alone eight
 * ninths. k clients at their bound leave 1 / (8 k + 1), which is 163 requests for 100 of them, all
 * of which the next one may have. Clients are identified by a hash with 1,024 values. */
#define NJ_CLIENT_SHARE_FACTOR 8u

/* Longest request path that is processed; PATH_MAX of Linux. */
#define NJ_PATH_MAX 4096

/* Open requests of a shard, for files and routes: 1,024 connections with all their 128 streams;
 * 512 bytes each, 64 MiB when all are in use. A further one gets 503. */
#define NJ_TXNS_MAX 131072u

/* Requests for files of a shard that wait for a worker or stream a large file: as many as it has
 * open requests, up to this; more if there are more connections. A further one gets 503. 18 KiB of
 * address space each, 1.1 GiB, touched as they are used. */
#define NJ_SITE_OPEN_MAX 65536u

/* Open requests of routes of a shard: 512 connections with all their 128 streams. A further one
 * gets 503. */
#define NJ_EXCHANGES_MAX 65536u

/* Requests and responses of routes are stored in blocks of these sizes. The largest fits the head
 * of a request with the most fields that HTTP/2 accepts (32 KiB as RFC 9113 6.5.2 counts, which
 * exceeds the size of its copy). All blocks of a shard: 64 + 64 + 256 + 40 MiB of address space,
 * touched when used; and the same again for request bodies, so that unread bodies cannot use up
 * the memory of responses. */
#define NJ_BLOCK_SMALL_BYTES  1024u
#define NJ_BLOCK_MEDIUM_BYTES 4096u
#define NJ_BLOCK_LARGE_BYTES  (16u * 1024u + 64u) /* the payload of a DATA frame, and its head */
#define NJ_BLOCK_HUGE_BYTES   (40u * 1024u)
#define NJ_BLOCKS_SMALL       65536u
#define NJ_BLOCKS_MEDIUM      16384u
#define NJ_BLOCKS_LARGE       16384u
#define NJ_BLOCKS_HUGE        1024u
/* Request bodies of one client may hold one in this many of the remaining blocks, without the small
 * ones: one client alone 120 of 360 MiB; seven 40 MiB each, which leaves 80; a hundred 3.5 MiB
 * each, which leaves 7. If more bytes arrive for a client at its share, the longest body of the
 * client that holds most is dropped. The share shrinks with the pool, so it is never the whole
 * pool. */
#define NJ_BODY_SHARE_DIVISOR 2u

/* Response bytes that wait for the peer's windows. A handler that writes more waits until half of
 * them are sent. */
#define NJ_RESPONSE_BUFFER_BYTES (64u * 1024u)
/* Fields of one response, and the bytes of their names and values. */
#define NJ_RESPONSE_FIELDS_MAX   48u
#define NJ_RESPONSE_HEAD_BYTES   (8u * 1024u)

/* Default maximum of a request head: its bytes as RFC 9113 6.5.2 counts them, and its fields. */
#define NJ_REQUEST_HEAD_BYTES    (32u * 1024u)
#define NJ_REQUEST_FIELDS_MAX    128u
/* Default maximum of a request body; of a request body for a worker, which gets the whole body at
 * once; and of a response from a worker. */
#define NJ_REQUEST_BODY_BYTES    (16u * 1024u * 1024u)
#define NJ_WORKER_REQUEST_BYTES  (1024u * 1024u)
#define NJ_WORKER_RESPONSE_BYTES (4u * 1024u * 1024u)
/* Responses of workers are not in these blocks, since they may be complete before the first byte
 * is sent. This bounds their memory per shard: responses that wait for their peers, and running
 * ones, counted with the recent maximum of their route. Beyond it, routes of workers respond with
 * 503. It corresponds to one connection whose 128 streams request the longest response and read
 * nothing. A route without history may exceed it once, by the responses of NJ_TASKS_OUT_MAX
 * requests. */
#define NJ_WORKER_HELD_BYTES     (128u * NJ_WORKER_RESPONSE_BYTES)
/* The recent maximum of a route decays by one part in this many per shorter response: after one
 * of 4 MiB and 110 of a few bytes, 4 KiB are expected. */
#define NJ_WORKER_LONGEST_FORGET 16u
