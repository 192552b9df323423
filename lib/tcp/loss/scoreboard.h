/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scoreboard: what was sent and not yet acknowledged, as runs of bytes that were sent in one go
 * and have met the same fate since (RFC 6675 3, RFC 8985 5.1). The runs of a connection cover
 * snd_una .. snd_nxt without a gap, a FIN counting one.
 *
 * A burst of segments is one run, and so is what has arrived between two holes, so there are far
 * fewer of them than segments. A SACK splits a run only between segments (RFC 2018 5): each run
 * knows where its segments begin, and a block that begins or ends within a segment says nothing of
 * that segment. So a peer cannot make us send the stream again in pieces of one byte
 * (CVE-2019-11479), and a flight of n segments takes at most n runs.
 *
 * The runs that fly are also on a list in the order in which they were last sent, so that RACK
 * finds those that are old enough to be lost at its beginning (RFC 8985 6.2). A run leaves it when
 * it is acknowledged, SACKed or given up.
 *
 * The number of runs is bounded for each connection. Each has NJ_SENT_RUNS_SURE for itself; beyond
 * that it may hold one part in NJ_SENT_RUNS_PART of those that the shard has left (dynamic
 * thresholds, as for received mbufs). Where no more is to be had, the scoreboard gets coarser: a
 * SACK that would split a run is not believed, new data joins the last run.
 */
#ifndef NJ_TCP_LOSS_SCOREBOARD_H
#define NJ_TCP_LOSS_SCOREBOARD_H

#include "tcp/seq.h"
#include "tcp/tcb.h"

struct nj_tcp;

enum nj_fate {
    NJ_FLYING, /* sent, and nothing is known of it */
    NJ_SACKED, /* has arrived; the peer may still throw it away */
    NJ_LOST,   /* to be sent again */
};

struct nj_sent {
    struct nj_list node;
    struct nj_list by_time; /* member of nj_xfer.by_time while it flies */
    nj_ns at;               /* last time it was sent */
    uint32_t seq, end;
    uint32_t edge;      /* a segment of it began here, and one every seg_bytes from here on; */
    uint16_t seg_bytes; /* an ACK may have taken the number away: edge <= seq. Not 0 */
    uint8_t fate;       /* enum nj_fate */
    bool again;         /* was sent more than once */
};

static_assert(sizeof(struct nj_sent) <= NJ_CACHE_LINE, "NJ_SENT_RUNS_* count 64 bytes for each");

/* What one ACK brought to light. */
struct nj_ack_news {
    uint32_t n_acked;     /* sequence numbers snd_una moved over */
    uint32_t n_delivered; /* acknowledged or SACKed for the first time */
    uint32_t n_sacked;    /* of these: SACKed */
    bool again_acked;     /* snd_una moved over bytes that were sent more than once */
    bool once_delivered;  /* bytes arrived that were sent once, and not lost on the way */
    bool lost_once;       /* ... that had been given up */
    nj_ns once_first_at;  /* when the oldest of them was sent; 0: none */
    nj_ns once_last_at;   /* the newest */
    nj_ns again_last_at;  /* of those sent more than once: the newest; 0: none */
    bool dsack;           /* the peer got something twice (RFC 2883) */
    bool repeats;         /* the ACK is the last one again: no text, the same window (RFC 5681 2) */
};

static inline struct nj_sent *nj_sent_first(const struct nj_xfer *x)
{
    return nj_list_empty(&x->sent) ? NULL : nj_container_of(x->sent.next, struct nj_sent, node);
}

static inline struct nj_sent *nj_sent_last(const struct nj_xfer *x)
{
    return nj_list_empty(&x->sent) ? NULL : nj_container_of(x->sent.prev, struct nj_sent, node);
}

static inline struct nj_sent *nj_sent_next(const struct nj_xfer *x, const struct nj_sent *r)
{
    return r->node.next == &x->sent ? NULL : nj_container_of(r->node.next, struct nj_sent, node);
}

static inline struct nj_sent *nj_sent_prev(const struct nj_xfer *x, const struct nj_sent *r)
{
    return r->node.prev == &x->sent ? NULL : nj_container_of(r->node.prev, struct nj_sent, node);
}

/* Was what ends at end1 sent after what ends at end2? Ties go by sequence number (RFC 8985 6.2,
 * RACK_sent_after). */
static inline bool nj_sent_after(nj_ns at1, uint32_t end1, nj_ns at2, uint32_t end2)
{
    return at1 > at2 || (at1 == at2 && nj_seq_lt(end2, end1));
}

static inline struct nj_sent *nj_sent_by_time(struct nj_list *node)
{
    return nj_container_of(node, struct nj_sent, by_time);
}

/* Of those that fly, the one that was sent first; or NULL. */
static inline struct nj_sent *nj_sent_oldest(const struct nj_xfer *x)
{
    return nj_list_empty(&x->by_time) ? NULL : nj_sent_by_time(x->by_time.next);
}

/* `n_seq` new numbers were sent from snd_nxt on; moves snd_nxt. */
void nj__sent_push(struct nj_tcp *, struct nj_tcb *, uint32_t n_seq, nj_ns now);
/* Is there a place for one more run, should nj__sent_push() want it? */
bool nj__sent_has_room(const struct nj_tcp *, const struct nj_tcb *);
/* Are `n` more runs to be had for new data, none of which need join the last one? */
bool nj__sent_has_runs(const struct nj_tcp *, const struct nj_tcb *, uint32_t n);
/* How much of what is lost may go again from `r` on in one go, so that segments end where they
 * ended before, also when snd_mss has grown: all of `r`, if it is cut every snd_mss, else one
 * segment of as many whole ones of it and the lost runs behind it as fit. */
uint32_t nj__sent_again_max(const struct nj_tcb *, const struct nj_sent *r);
/* From the beginning of `r` up to `end` it was sent again. */
void nj__sent_again(struct nj_tcp *, struct nj_tcb *, struct nj_sent *r, uint32_t end, nj_ns now);
/* snd_mss has become smaller, and what is in flight was given up: it will be cut anew. */
void nj__sent_recut(struct nj_tcp *, struct nj_tcb *);
/* The last run, cut so that it has at most `n_seq` numbers if a run is to be had for the rest. Its
 * segments keep their edges. */
struct nj_sent *nj__sent_tail(struct nj_tcp *, struct nj_tcb *, uint32_t n_seq);
/* Give up: `r` is lost. False: it was a probe of the path MTU, whose loss is no sign of congestion
 * (RFC 4821 7.6.2). */
bool nj__sent_lose(struct nj_tcb *, struct nj_sent *r);
/* Give up the numbers before `end` that fly. */
void nj__sent_lose_until(struct nj_tcp *, struct nj_tcb *, uint32_t end);
/* Everything that is SACKed may be gone again (RFC 2018 8). */
void nj__sent_forget_sacks(struct nj_tcb *);
/* What was given up flies after all, each run since it was last sent. */
void nj__sent_unlose(struct nj_xfer *);
/* The first run to be sent again, or NULL. */
struct nj_sent *nj__sent_first_lost(struct nj_xfer *);

/* A cumulative ACK: everything before `ack` goes. */
void nj__sent_acked(struct nj_tcp *, struct nj_tcb *, uint32_t ack, struct nj_ack_news *,
                    nj_ns now);
/* The SACK option of a segment that acknowledges `ack` (RFC 2018, RFC 2883 5). */
void nj__sent_sacked(struct nj_tcp *, struct nj_tcb *, const struct nj_seg *, struct nj_ack_news *,
                     nj_ns now);
void nj__sent_free(struct nj_tcp *, struct nj_xfer *);

#endif
