/* SPDX-License-Identifier: BSD-3-Clause */
/* Every bound in one place, with the arithmetic behind it. */
#ifndef NJ_BASE_LIMITS_H
#define NJ_BASE_LIMITS_H

/* Packets per rx or tx burst. 32 fills a cache-resident batch; more only adds latency. */
#define NJ_BURST_MAX 32

/* Shards of one process. A steering ring exists for each ordered pair, so this bounds n*(n-1). */
#define NJ_SHARDS_MAX 64

/* MiB of the EAL's memory that an lcore needs: both pools of dpdk/port.c (38 MiB for 16 Ki mbufs)
 * and the EAL's share; with --no-huge, 195 do. */
#define NJ_LCORE_EAL_MIB       200u
/* The same with jumbo frames. */
#define NJ_LCORE_EAL_JUMBO_MIB 300u

/* MTU that may be asked for, in bytes of an IP packet: IPv6 needs the least (RFC 8200 5), jumbo
 * frames of most switches and NICs carry the most. */
#define NJ_MTU_MIN 1280u
#define NJ_MTU_MAX 9000u

/* Descriptors of a device's receive or transmit queue. */
#define NJ_RING_MIN     64u
#define NJ_RING_DEFAULT 1024u
#define NJ_RING_MAX     8192u

/* Bytes a connection may hold between HTTP/2 and the wire, unsent plus unacknowledged: two
 * congestion windows, at least MIN and at most MAX. So a peer that acknowledges nothing pins MIN,
 * and 4 MiB carry 320 Mbit/s over 100 ms. */
#define NJ_SENDQ_BYTES_MIN (64u * 1024u)
#define NJ_SENDQ_BYTES_MAX (4u * 1024u * 1024u)

/* What a peer has to take of a response in each send_timeout at least, be the lowest rate 0: a byte
 * now and then does not keep a stream. */
#define NJ_SEND_BYTES_MIN 4096u

/* What a peer has to send of a request's body per second on the average of body_timeout, unless
 * told otherwise. A link of 9,600 bit/s, as GSM had it, carries twice as much. */
#define NJ_MIN_UPLOAD_RATE 500u
/* From a request to the end of its body, unless told otherwise: 16 MiB (NJ_REQUEST_BODY_BYTES) at
 * 37 kbit/s. */
#define NJ_BODY_DEADLINE_S 3600u

/* Receive window of one connection, and the most out-of-order data held for it. Each held mbuf
 * pins 2 KiB of pool whatever it carries, so the count is bounded too: 256 one-byte segments. */
#define NJ_RECV_WINDOW_BYTES (256u * 1024u)
#define NJ_RECV_MBUFS_MAX    256u

/* Receive windows of HTTP/2, where somebody reads request bodies: what a peer may have sent and the
 * reader has not consumed. A window is opened again when half of it was consumed, so a stream needs
 * twice what TCP lets come in a round trip for TCP alone to set the pace: 256 KiB per round trip,
 * 100 Mbit/s over 20 ms and 20 Mbit/s over 100 ms. The connection has room for two such streams:
 * one whose reader has stalled stops only itself. This second window is also all that a peer can
 * pin with one connection, however many streams it opens. */
#define NJ_H2_STREAM_WINDOW_BYTES (2u * NJ_RECV_WINDOW_BYTES)
#define NJ_H2_CONN_WINDOW_BYTES   (2u * NJ_H2_STREAM_WINDOW_BYTES)
/* Where handlers read them, a request may have to wait for a stack until others are done, and what
 * came of its body must not keep from those the bytes they wait for: there the connection has room
 * for the windows of all its streams, 64 MiB. What it may pin is bounded by NJ_BLOCKS_*. */
#define NJ_H2_ROUTES_WINDOW_BYTES (128u * NJ_H2_STREAM_WINDOW_BYTES)

/* A payload of up to this many bytes is copied to the end of the mbuf before it, when both are held
 * and it fits: 256 bytes cost about four cache lines to copy and would pin 2 KiB. */
#define NJ_RECV_COALESCE_BYTES 256u

/* Runs of the scoreboard (tcp/sent.h, 64 bytes each): of one connection, 4 MiB in flight in bursts
 * of two segments; of a shard, 4 MiB of memory that connections share. An ACK walks over those of
 * its connection once for its SACK blocks, which is 12 us with 2,000 of them scattered over memory,
 * and once more where it shows something lost. */
#define NJ_SENT_RUNS_MAX      2048u
#define NJ_SENT_RUNS_SHARD    65536u
/* Each connection has this many runs of its own, whatever others need: three bursts in flight, a
 * hole, what arrived behind it, and the three that reading one more SACK option may take for a
 * moment. 512 bytes for each connection, touched when used. */
#define NJ_SENT_RUNS_RESERVED 8u
/* Of the shared runs a connection may hold one part in so many of those left. k connections that
 * take all they may leave SHARD * 4 / (k + 4): 3,855 for 64 of them, so the next one may have 771.
 */
#define NJ_SENT_RUNS_DIVISOR  4u
/* New data leaves so many of a connection's runs to SACKs: a block within a run takes two. */
#define NJ_SENT_RUNS_SPARE    3u

/* Neighbours (ARP) per shard, and packets that wait for one answer. */
#define NJ_NEIGH_MAX         256u
#define NJ_NEIGH_PENDING_MAX 4u

/* Neighbours whose MAC address is configured. They are never pushed out of the table, so they are
 * fewer than the 8 places where an address may stand. */
#define NJ_NEIGH_FIXED_MAX 7u

/* Static routes of a port. Each packet that is not like the one before it is compared with all. */
#define NJ_IP_ROUTES_MAX 16u

/* Strangers that are asked for at a time, and those that we begin to ask for per second: packets
 * that come from made-up addresses of the link make us ask. One that is not there takes its place
 * for the 3 s of three questions: with 48 places 16 of them per second, 48 questions, 192 packets
 * that wait, and less than a fifth of the table. Those that are there answer within milliseconds,
 * and the rate is their bound. */
#define NJ_NEIGH_UNSOLICITED_MAX   48u
#define NJ_NEIGH_UNSOLICITED_PER_S 128u

/* Local ports of connections that we open, above those of services (RFC 6335 6). A power of two, so
 * that a start counted modulo 2^32 goes around evenly. A search looks at each at most once: one in
 * n_shards steers home, so a shard can have 32,768 / n_shards connections to one remote port. */
#define NJ_ACTIVE_PORT_MIN 32768u
#define NJ_ACTIVE_PORTS    32768u

/* Threads for OS_BLOCKING tasks. */
#define NJ_WORKERS_MAX 32u

/* Tasks of one lcore and kind that lie ready in its ring, for each worker that is not taken by a
 * long one: what a task can find before it there, and what one poll of the lcore can take home.
 * More hides a longer time between polls, but stands before another client's first task. */
#define NJ_WORKER_DEPTH 8u

/* Reads from the disk that are under way, of all lcores: enough to keep an array of SSDs busy. One
 * client may have half of them, and those that nobody has asked for yet are a quarter at most: so
 * where all of these are stuck others are served. With 256 KiB each these are 16 MiB. */
#define NJ_FILE_READS_MAX        64u
#define NJ_FILE_READS_CLIENT_MAX 32u
#define NJ_FILE_READS_AHEAD_MAX  16u

/* Only tasks of classes that took no longer than this lately lie ready behind those that may run:
 * eight of them take at most 1 ms. */
#define NJ_WORKER_SHORT_TASK_NS (125u * 1000u)

/* Handlers of one connection that run or wait, those of streams that are over included: as many as
 * it may have streams open at once (SETTINGS_MAX_CONCURRENT_STREAMS). One more request is refused
 * with REFUSED_STREAM, as one beyond that setting is (RFC 9113 5.1.2): nothing has looked at it,
 * and the client may send it again (8.7). */
#define NJ_CONN_TASKS_MAX 128u

/* Operations on files that run at once, each on a thread of its own. */
#define NJ_FILE_TASKS_MAX 4u

/* OS_BLOCKING tasks of one lcore that run or wait; beyond they are rejected (503). At 1 ms each and
 * four workers the last one starts after 256 ms. */
#define NJ_TASKS_OUT_MAX 1024u

/* Connections of one client below which none yields its place in a table that is nearly full: an
 * idle one, and one that is at work. A browser has one or two. Clients are told apart by a hash
 * with as many values as there are places, so by chance eight that have one connection each meet
 * in one of 100,000 values, sixteen in none (Poisson with mean 1: 1e-5 and 2e-14). */
#define NJ_SHARE_IDLE_MIN 8u
#define NJ_SHARE_BUSY_MIN 16u

/* Of each of the pools below a client may hold so many times what is left: one alone eight ninths;
 * k of them at their bound leave 1 / (8 k + 1), which is 163 requests for 100 of them, and the next
 * one may have all of these. Clients are told apart by a hash with 1,024 values (shard/stacks.h).
 */
#define NJ_CLIENT_SHARE_FACTOR 8u

/* Longest request path we look at; PATH_MAX of Linux. */
#define NJ_PATH_MAX 4096

/* Requests that a shard has open at once, of its site and of routes alike: 1,024 connections with
 * all their 128 streams; 456 bytes each, 57 MiB when all are in use. One more is answered with 503.
 */
#define NJ_TXNS_MAX 131072u

/* Requests of its site that wait for a worker or stream a large file, of a shard: as many as it has
 * requests open at once, up to this; more where there are more connections. One more is answered
 * with 503. 18 KiB of address space each, 1.1 GiB, touched as they are used. */
#define NJ_SITE_OPEN_MAX 65536u

/* Requests of routes that a shard has open at once: 512 connections with all their 128 streams. One
 * more is answered with 503. */
#define NJ_EXCHANGES_MAX 65536u

/* Bytes of requests and responses of routes live in blocks of these sizes; the head of a request
 * with as many fields as HTTP/2 lets through (32 KiB as RFC 9113 6.5.2 counts, which is more than
 * its copy takes) fits the largest. All of a shard together: 64 + 64 + 256 + 40 MiB of address
 * space, touched when used; and as much again for bodies of requests, so that peers that send and
 * are not read leave responses alone. */
#define NJ_BLOCK_SMALL_BYTES  1024u
#define NJ_BLOCK_MEDIUM_BYTES 4096u
#define NJ_BLOCK_LARGE_BYTES  (16u * 1024u + 64u) /* the payload of a DATA frame, and its head */
#define NJ_BLOCK_HUGE_BYTES   (40u * 1024u)
#define NJ_BLOCKS_SMALL       65536u
#define NJ_BLOCKS_MEDIUM      16384u
#define NJ_BLOCKS_LARGE       16384u
#define NJ_BLOCKS_HUGE        1024u
/* Bodies of requests of one connection may hold one part in so many of the blocks left to take, the
 * small ones not counted: one alone 120 of 360 MiB, which is more than its window; seven 40 MiB
 * each, and 80 are left; a hundred 3.5 MiB each, and 7 are left. Where more comes to one that
 * has its share, who holds most loses a body; a share that shrinks as the pool does is never all of
 * it. */
#define NJ_BODY_SHARE_DIVISOR 2u

/* Response bytes that wait for the peer's windows; a handler that writes more waits, too. It goes
 * on when half of them are gone. */
#define NJ_RESPONSE_BUFFER_BYTES (64u * 1024u)
/* Fields of one response, and the bytes of their names and values. */
#define NJ_RESPONSE_FIELDS_MAX   48u
#define NJ_RESPONSE_HEAD_BYTES   (8u * 1024u)

/* Longest request body of a route that does not say; of one whose handler runs on a worker, where
 * the whole body goes first; and the longest response of such a one. */
#define NJ_REQUEST_BODY_BYTES    (16u * 1024u * 1024u)
#define NJ_WORKER_REQUEST_BYTES  (1024u * 1024u)
#define NJ_WORKER_RESPONSE_BYTES (4u * 1024u * 1024u)
/* Responses of workers are not in blocks of those pools: they may be whole before the first byte
 * leaves. All that wait for their peers, and those under way, each taken for as long as the longest
 * of its route lately, have this much of a shard; then routes of workers are answered with 503. It
 * is one connection whose 128 streams ask for the longest and take nothing. A route nobody knows
 * yet may pass it once, with what NJ_TASKS_OUT_MAX requests bring. */
#define NJ_WORKER_HELD_BYTES     (128u * NJ_WORKER_RESPONSE_BYTES)
/* The longest of a route is forgotten by one part in so many with each that comes home and is
 * shorter: after one of 4 MiB and 110 of a few bytes 4 KiB are expected. */
#define NJ_WORKER_LONGEST_FORGET 16u

#endif
