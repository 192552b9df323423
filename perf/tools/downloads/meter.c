/* SPDX-License-Identifier: BSD-3-Clause */
#include "meter.h"

#include <stdlib.h>

bool nj_meter_init(struct nj_meter *m, nj_ns now, nj_ns bin)
{
    *m = (struct nj_meter){.began = now, .bin = bin, .from = NJ_NEVER, .to = NJ_NEVER};
    m->events = calloc(NJ_METER_EVENTS, sizeof *m->events);
    m->bins = calloc(NJ_METER_BINS_MAX, sizeof *m->bins);
    return m->events && m->bins;
}

void nj_meter_free(struct nj_meter *m)
{
    free(m->events);
    free(m->bins);
}

void nj_meter_window(struct nj_meter *m, nj_ns from, nj_ns hold)
{
    m->from = from;
    m->to = from + hold;
    m->head = m->tail;
    m->in_span = 0;
}

static struct nj_meter_event *event(struct nj_meter *m, uint64_t i)
{
    return &m->events[i % NJ_METER_EVENTS];
}

static void slide(struct nj_meter *m, uint64_t n_bytes, nj_ns now)
{
    while (m->head < m->tail && event(m, m->head)->at + NJ_METER_SPAN <= now)
        m->in_span -= event(m, m->head++)->n_bytes;
    if (m->tail - m->head == NJ_METER_EVENTS) {
        event(m, m->head + 1)->n_bytes += event(m, m->head)->n_bytes;
        m->head++;
    }
    *event(m, m->tail++) = (struct nj_meter_event){now, n_bytes};
    m->in_span += n_bytes;
    if (m->in_span > m->in_span_max) {
        m->in_span_max = m->in_span;
        m->in_span_max_at = now;
    }
}

void nj_meter_add(struct nj_meter *m, const uint64_t *n_bytes, uint32_t n_groups, nj_ns now)
{
    uint64_t bin = (now - m->began) / m->bin, sum = 0;

    if (bin >= NJ_METER_BINS_MAX) /* the last bin has all later arrivals */
        bin = NJ_METER_BINS_MAX - 1;
    if (m->n_bins <= bin)
        m->n_bins = (uint32_t)bin + 1;
    for (uint32_t i = 0; i < n_groups; i++) {
        m->bins[bin][i] += n_bytes[i];
        sum += n_bytes[i];
    }
    if (nj_meter_steady(m, now)) {
        m->window_bytes += sum;
        slide(m, sum, now);
    }
}
