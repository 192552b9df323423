/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The SACK option of our ACKs: out-of-order segments (RFC 2018) and duplicates (RFC 2883).
 *
 * Only one byte of each recently changed block is stored. The edges are read from the reassembly
 * list when an ACK is sent. So dropped data is no longer reported (RFC 2018 8), and adjacent blocks
 * are merged.
 */
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"

#define OPTION_BYTES 4u /* kind, length and padding */
#define BLOCK_BYTES  8u

void nj__sack_note_dsack(struct nj_tcb *t, uint32_t first, uint32_t end)
{
    if (!t->sack_on || t->x->dsack.first != t->x->dsack.end)
        return; /* the first duplicate is kept until it is reported (RFC 2883 4) */
    t->x->dsack = (struct nj_sack_block){first, end};
}

/* The first run of bytes in [first, end) that is held already. */
static struct nj_sack_block held_part(const struct nj_tcb *t, uint32_t first, uint32_t end)
{
    struct nj_sack_block dup = {first, first};

    for (const struct rte_mbuf *m = t->x->reasm; m; m = m->next) {
        uint32_t from = nj_seq_max(m->hash.usr, first), to = m->hash.usr + m->data_len;
        if (nj_seq_lt(end, to))
            to = end;
        if (!nj_seq_lt(from, to))
            continue;
        if (dup.first == dup.end)
            dup.first = from;
        else if (dup.end != from)
            break;
        dup.end = to;
    }
    return dup;
}

void nj__sack_note_block(struct nj_tcb *t, uint32_t first, uint32_t end)
{
    struct nj_xfer *x = t->x;

    if (!t->sack_on)
        return;
    struct nj_sack_block dup = held_part(t, first, end);
    if (dup.first != dup.end)
        nj__sack_note_dsack(t, dup.first, dup.end);
    if (first == t->rcv_nxt)
        return; /* acknowledged soon */
    memmove(&x->sack_at[1], &x->sack_at[0], sizeof x->sack_at - sizeof x->sack_at[0]);
    x->sack_at[0] = first;
    x->n_recent_blocks += x->n_recent_blocks < NJ_SACK_BLOCKS_MAX;
}

static bool within(const struct nj_sack_block *b, uint32_t seq)
{
    return nj_seq_in(seq, b->first, b->end - b->first);
}

/* RFC 2018 4: blocks of the list, most recently changed first; other blocks fill the rest. */
struct report {
    struct nj_sack_block recent[NJ_SACK_BLOCKS_MAX], other[NJ_SACK_BLOCKS_MAX];
    bool found[NJ_SACK_BLOCKS_MAX];
    uint32_t n_other;
};

static void classify(struct report *r, const struct nj_xfer *x, const struct nj_sack_block *b)
{
    for (uint32_t i = 0; i < x->n_recent_blocks; i++)
        if (within(b, x->sack_at[i])) {
            r->recent[i] = *b;
            r->found[i] = true;
            return;
        }
    if (r->n_other < NJ_SACK_BLOCKS_MAX)
        r->other[r->n_other++] = *b;
}

static void read_list(struct report *r, const struct nj_xfer *x)
{
    const struct rte_mbuf *m = x->reasm;

    r->n_other = 0;
    memset(r->found, 0, sizeof r->found);
    while (m) {
        struct nj_sack_block b = {m->hash.usr, m->hash.usr};
        for (; m && m->hash.usr == b.end; m = m->next)
            b.end += m->data_len;
        classify(r, x, &b);
    }
}

/* Forget blocks that are gone, or merged into others. */
static void drop_merged_blocks(struct nj_xfer *x, const struct report *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n_recent_blocks; i++)
        if (r->found[i])
            x->sack_at[n++] = x->sack_at[i];
    x->n_recent_blocks = (uint8_t)n;
}

static uint32_t blocks_that_fit(const struct nj_tcb *t, uint32_t n_payload)
{
    uint32_t most = t->ts_on ? NJ_SACK_BLOCKS_MAX - 1 : NJ_SACK_BLOCKS_MAX;
    uint32_t room = n_payload < t->snd_mss ? t->snd_mss - n_payload : 0;
    uint32_t fit = room > OPTION_BYTES ? (room - OPTION_BYTES) / BLOCK_BYTES : 0;

    return fit < most ? fit : most;
}

static void add_block(struct nj_tcp_opts *o, const struct nj_sack_block *b, uint32_t most)
{
    if (o->n_sack < most)
        o->sack[o->n_sack++] = *b;
}

uint32_t nj__sack_write_blocks(struct nj_tcb *t, struct nj_tcp_opts *o, uint32_t n_payload)
{
    struct nj_xfer *x = t->x;
    uint32_t most = blocks_that_fit(t, n_payload);
    bool dup = x->dsack.first != x->dsack.end;
    struct report r;

    o->n_sack = 0;
    if (!t->sack_on || most == 0 || (!dup && !x->reasm))
        return 0;
    if (dup)
        add_block(o, &x->dsack, most);
    x->dsack.end = x->dsack.first;
    read_list(&r, x);
    for (uint32_t i = 0; i < x->n_recent_blocks; i++)
        if (r.found[i])
            add_block(o, &r.recent[i], most);
    for (uint32_t i = 0; i < r.n_other; i++)
        add_block(o, &r.other[i], most);
    drop_merged_blocks(x, &r);
    return o->n_sack;
}
