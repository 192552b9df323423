/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include <string.h>

static bool push(struct ring *r, struct rte_mbuf *m)
{
    if (r->n == WIRE_MAX)
        return false;
    r->m[(r->head + r->n++) % WIRE_MAX] = m;
    return true;
}

static struct rte_mbuf *pop(struct ring *r)
{
    if (r->n == 0)
        return NULL;
    struct rte_mbuf *m = r->m[r->head];
    r->head = (r->head + 1) % WIRE_MAX;
    r->n--;
    return m;
}

uint32_t wire_send(struct wire *w, struct rte_mbuf **m, uint32_t n)
{
    uint32_t sent = 0;

    while (sent < n && push(&w->sent, m[sent]))
        sent++;
    return sent;
}

uint32_t wire_receive(struct wire *w, struct rte_mbuf **m, uint32_t n)
{
    uint32_t got = 0;

    while (got < n && (m[got] = pop(&w->arrived)))
        got++;
    return got;
}

/* Copies a packet to an mbuf of `pool`. NULL: the pool is empty, or the packet does not fit. */
static struct rte_mbuf *copy(struct rte_mempool *pool, const struct rte_mbuf *m)
{
    struct rte_mbuf *c = rte_pktmbuf_alloc(pool);

    if (!c)
        return NULL;
    if (m->pkt_len > rte_pktmbuf_tailroom(c)) {
        rte_pktmbuf_free(c);
        return NULL;
    }
    for (uint8_t *to = (uint8_t *)rte_pktmbuf_append(c, (uint16_t)m->pkt_len); m; m = m->next) {
        memcpy(to, rte_pktmbuf_mtod(m, const void *), m->data_len);
        to += m->data_len;
    }
    return c;
}

void wire_carry(struct wire *w)
{
    struct rte_mbuf *m;

    while ((m = pop(&w->sent))) {
        struct rte_mbuf *c = copy(w->rx_pool, m);
        rte_pktmbuf_free(m);
        if (c && push(&w->arrived, c))
            continue;
        rte_pktmbuf_free(c);
        w->n_lost++;
    }
}

void wire_fini(struct wire *w)
{
    struct rte_mbuf *m;

    while ((m = pop(&w->sent)) || (m = pop(&w->arrived)))
        rte_pktmbuf_free(m);
}
