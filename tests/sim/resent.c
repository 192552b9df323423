/* SPDX-License-Identifier: BSD-3-Clause */
#include "resent.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "raw.h"
#include "wire/packet.h"

static struct sim_stream *find(struct sim_resent *r, const uint8_t *frame, const struct sim_raw *s)
{
    uint32_t addr = nj_sim_get32(frame + s->ip + 16);

    for (uint32_t i = 0; i < SIM_STREAMS_MAX; i++) {
        struct sim_stream *m = &r->stream[i];
        if (m->addr == 0)
            *m = (struct sim_stream){.addr = addr, .sport = s->sport, .dport = s->dport};
        if (m->addr == addr && m->sport == s->sport && m->dport == s->dport)
            return m;
    }
    NJ_CHECK(!"more connections than streams");
    return NULL;
}

static void begin(struct sim_stream *m, uint32_t iss)
{
    if (m->iss != iss && m->byte)
        memset(m->byte, 0, m->n_room * sizeof m->byte[0]);
    m->iss = iss;
}

static void make_room(struct sim_stream *m, uint32_t n)
{
    uint32_t n_room = m->n_room ? m->n_room : 65536;

    while (n_room < n)
        n_room *= 2;
    if (n_room == m->n_room)
        return;
    m->byte = realloc(m->byte, n_room * sizeof m->byte[0]);
    NJ_CHECK(m->byte);
    memset(m->byte + m->n_room, 0, (n_room - m->n_room) * sizeof m->byte[0]);
    m->n_room = n_room;
}

bool nj_sim_resent_check(struct sim_resent *r, const uint8_t *frame, uint32_t n_bytes, uint32_t *at)
{
    struct sim_raw s;

    if (!nj_sim_raw_parse(frame, n_bytes, &s))
        return true;
    struct sim_stream *m = find(r, frame, &s);
    if (s.flags & NJ_TCP_SYN)
        begin(m, s.seq);
    uint32_t first = s.seq - m->iss - 1;
    if (s.n_data > 0)
        make_room(m, first + s.n_data);
    for (uint32_t i = 0; i < s.n_data; i++) {
        uint16_t byte = frame[s.data + i] | 0x100, *known = &m->byte[first + i];
        r->n_again += *known != 0;
        *at = first + i;
        if (*known != 0 && *known != byte)
            return false;
        *known = byte;
    }
    return true;
}

void nj_sim_resent_fini(struct sim_resent *r)
{
    for (uint32_t i = 0; i < SIM_STREAMS_MAX; i++)
        free(r->stream[i].byte);
}
