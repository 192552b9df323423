/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scoreboard of unacknowledged data (RFC 6675 3, RFC 8985 5.1). A run is a range of bytes that
 * were sent at the same time and have the same state. The runs of a connection cover snd_una ..
 * snd_nxt without a gap; a FIN counts one.
 *
 * A burst of segments is one run, and so is the data SACKed between two holes, so runs are far
 * fewer than segments. A SACK splits a run only between segments (RFC 2018 5): each run records
 * where its segments begin, and a block that covers a segment in part is ignored for that segment.
 * So a peer cannot force retransmissions of one byte (CVE-2019-11479), and n segments in flight
 * take at most n runs.
 *
 * Runs in flight are also on a list ordered by their last send time, so that RACK finds the oldest
 * first (RFC 8985 6.2). A run leaves this list when it is acknowledged, SACKed or marked as lost.
 *
 * The number of runs is bounded. Each connection has NJ_SENT_RUNS_RESERVED reserved; beyond that it
 * may hold one part in NJ_SENT_RUNS_DIVISOR of the free runs of the shard (dynamic thresholds, as
 * for received mbufs). Without a free run the scoreboard gets coarser: a SACK that would split a
 * run is ignored, and new data joins the last run.
 */
#pragma once

#include "tcp/seq.h"
#include "tcp/tcb.h"

struct nj_tcp;

enum nj_run_state {
    NJ_RUN_IN_FLIGHT, /* sent, neither acknowledged nor lost */
    NJ_RUN_SACKED,    /* selectively acknowledged; the peer may still renege */
    NJ_RUN_LOST,      /* to be retransmitted */
};

struct nj_sent_run {
    struct nj_list node;
    struct nj_list by_send_time; /* member of nj_xfer.by_send_time while in flight */
    nj_ns at;                    /* last send time */
    uint32_t seq, end;
    uint32_t edge;      /* a segment begins here, and one every seg_bytes after it; */
    uint16_t seg_bytes; /* not 0. edge may be below seq after an ACK */
    uint8_t fate;       /* enum nj_run_state */
    bool again;         /* retransmitted */
};

static_assert(sizeof(struct nj_sent_run) <= NJ_CACHE_LINE,
              "NJ_SENT_RUNS_* count 64 bytes for each");

/* The effect of one ACK. */
struct nj_ack_result {
    uint32_t n_acked;       /* advance of snd_una */
    uint32_t n_delivered;   /* newly acknowledged or SACKed */
    bool rexmit_acked;      /* snd_una passed retransmitted bytes */
    bool lost_first_copy;   /* delivered: bytes sent only once, marked as lost */
    nj_ns oldest_once_at;   /* oldest send time of bytes sent only once; 0: none */
    nj_ns newest_once_at;   /* newest send time of those */
    nj_ns newest_rexmit_at; /* newest send time of retransmitted bytes; 0: none */
    bool dsack;             /* D-SACK received (RFC 2883) */
    bool repeats;           /* duplicate ACK: no text, same number and window (RFC 5681 2) */
};

static inline struct nj_sent_run *nj_sent_run_first(const struct nj_xfer *x)
{
    return nj_list_empty(&x->sent) ? NULL : nj_container_of(x->sent.next, struct nj_sent_run, node);
}

static inline struct nj_sent_run *nj_sent_run_last(const struct nj_xfer *x)
{
    return nj_list_empty(&x->sent) ? NULL : nj_container_of(x->sent.prev, struct nj_sent_run, node);
}

static inline struct nj_sent_run *nj_sent_run_next(const struct nj_xfer *x,
                                                   const struct nj_sent_run *r)
{
    return r->node.next == &x->sent ? NULL
                                    : nj_container_of(r->node.next, struct nj_sent_run, node);
}

static inline struct nj_sent_run *nj_sent_run_prev(const struct nj_xfer *x,
                                                   const struct nj_sent_run *r)
{
    return r->node.prev == &x->sent ? NULL
                                    : nj_container_of(r->node.prev, struct nj_sent_run, node);
}

static inline struct nj_sent_run *nj_sent_run_of_node(struct nj_list *node)
{
    return nj_container_of(node, struct nj_sent_run, by_send_time);
}

/* The run in flight with the oldest send time, or NULL. */
static inline struct nj_sent_run *nj_sent_run_oldest(const struct nj_xfer *x)
{
    return nj_list_empty(&x->by_send_time) ? NULL : nj_sent_run_of_node(x->by_send_time.next);
}

/* Record `n_seq` new sequence numbers sent from snd_nxt on; advances snd_nxt. */
void nj__scoreboard_append(struct nj_tcp *, struct nj_tcb *, uint32_t n_seq, nj_ns now);
/* May nj__scoreboard_append() be called: can the last run be extended, or is a run available? */
bool nj__scoreboard_can_append(const struct nj_tcp *, const struct nj_tcb *);
/* Are `n` runs available for new data, without joining the last run? */
bool nj__scoreboard_has_free_runs(const struct nj_tcp *, const struct nj_tcb *, uint32_t n);
/* Lost bytes from `r` on that one call may retransmit while keeping segment boundaries, also when
 * snd_mss has grown. All of `r` if its segments have snd_mss bytes; else one segment made of as
 * many whole old segments of `r` and the lost runs after it as fit. */
uint32_t nj__scoreboard_rexmit_max(const struct nj_tcb *, const struct nj_sent_run *r);
/* The bytes from the start of `r` up to `end` were retransmitted. */
void nj__scoreboard_rexmitted(struct nj_tcp *, struct nj_tcb *, struct nj_sent_run *r, uint32_t end,
                              nj_ns now);
/* snd_mss was reduced and all in flight is marked as lost: set new segment boundaries. */
void nj__scoreboard_resegment(struct nj_tcp *, struct nj_tcb *);
/* Split the last `n_seq` numbers off the last run, if a run is available, and return the last run.
 * Segment boundaries are kept. */
struct nj_sent_run *nj__scoreboard_split_tail(struct nj_tcp *, struct nj_tcb *, uint32_t n_seq);
/* Mark `r` as lost. Returns false for a path MTU probe, whose loss is no sign of congestion (RFC
 * 4821 7.6.2). */
bool nj__scoreboard_mark_lost(struct nj_tcb *, struct nj_sent_run *r);
/* Mark all data in flight before `end` as lost. */
void nj__scoreboard_lose_until(struct nj_tcp *, struct nj_tcb *, uint32_t end);
/* The peer may have reneged: mark all SACKed data as lost (RFC 2018 8). */
void nj__scoreboard_lose_sacked(struct nj_tcb *);
/* Undo: all lost runs are in flight, each with its old send time. */
void nj__scoreboard_unmark_all_lost(struct nj_xfer *);
/* The first lost run, or NULL. */
struct nj_sent_run *nj__scoreboard_first_lost(struct nj_xfer *);

/* Process a cumulative ACK: remove all before `ack`. */
void nj__scoreboard_ack(struct nj_tcp *, struct nj_tcb *, uint32_t ack, struct nj_ack_result *,
                        nj_ns now);
/* Process the SACK option of a segment (RFC 2018). True: its first block is a D-SACK (RFC 2883). */
bool nj__scoreboard_process_sack_opt(struct nj_tcp *, struct nj_tcb *, const struct nj_seg *,
                                     struct nj_ack_result *, nj_ns now);
void nj__scoreboard_free(struct nj_tcp *, struct nj_xfer *);
