/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/address_text.h"
#include "log/log.h"
#include "mgmt/pcapng.h"
#include "threads/os_clock.h"

_Static_assert(NJ_CAPTURE_SNAPLEN_MAX + NJ__PCAPNG_BLOCK_MAX <= NJ__TAP_OUT_BYTES_MAX &&
                   NJ_SERVER_PORTS_MAX * NJ__PCAPNG_BLOCK_MAX < NJ__TAP_OUT_BYTES_MAX,
               "a packet, and the blocks of all ports, have room");

struct nj_mgmt_capture {
    const struct nj_mgmt_view *view;
    struct nj__taps *taps;
    struct nj__capture_options options;
    uint64_t begun_ns;                  /* UTC */
    uint64_t compared_tsc, compared_ns; /* the same moment; 0: not yet */
    uint32_t interface_of[NJ_SERVER_PORTS_MAX];
    struct {
        struct nj_capture capture;
        struct nj_capture_command begin, end;
    } lcore[NJ_SHARDS_MAX];
};

static uint32_t port_of(const struct nj_mgmt_view *v, uint32_t lcore)
{
    uint32_t k = 0;

    while (k + 1 < v->n_ports && lcore >= v->port[k].first + v->port[k].n_shards)
        k++;
    return k;
}

static bool is_in(const struct nj_mgmt_capture *c, uint32_t port)
{
    return c->options.port < 0 || c->view->port[port].dev->id == c->options.port;
}

/* --- what the taps call ------------------------------------------------------------------------
 */

static struct nj_command *begin(void *of, uint32_t lcore, struct nj_record_ring *ring)
{
    struct nj_mgmt_capture *c = of;
    struct nj_capture *capture = &c->lcore[lcore].capture;
    struct nj_capture_command *command = &c->lcore[lcore].begin;

    *capture = (struct nj_capture){ring, c->options.of, c->options.snaplen};
    *command = (struct nj_capture_command){.end = c->view->lcore[lcore].end, .capture = capture};
    nj_capture_begin(command);
    return &command->command;
}

static struct nj_command *end(void *of, uint32_t lcore)
{
    struct nj_mgmt_capture *c = of;
    struct nj_capture_command *command = &c->lcore[lcore].end;

    *command = (struct nj_capture_command){.end = c->view->lcore[lcore].end};
    nj_capture_begin(command);
    return &command->command;
}

static uint8_t *room(struct nj__tap_out *out)
{
    return (uint8_t *)out->text + out->n;
}

static void head(void *of, struct nj__tap_out *out)
{
    struct nj_mgmt_capture *c = of;
    char application[64], description[64];
    uint32_t n = 0;

    snprintf(application, sizeof application, "nightjar %s", nj_version());
    out->n += nj__pcapng_section(room(out), application);
    for (uint32_t k = 0; k < c->view->n_ports; k++) {
        const struct nj_dpdk_port *dev = c->view->port[k].dev;
        if (!is_in(c, k))
            continue;
        snprintf(description, sizeof description, "DPDK port %u, driver %s", dev->id, dev->driver);
        struct nj__pcapng_interface interface = {
            .name = dev->name, .description = description, .snaplen = c->options.snaplen};
        memcpy(interface.mac, dev->mac.addr_bytes, sizeof interface.mac);
        out->n += nj__pcapng_interface(room(out), &interface);
        c->interface_of[k] = n++;
    }
}

/* The clocks are compared once per second: packets of a burst have one time. */
static uint64_t utc_ns(struct nj_mgmt_capture *c, uint64_t tsc)
{
    const struct nj_tsc_clock *clock = c->view->clock;
    uint64_t now = rte_rdtsc();

    if (c->compared_ns == 0 || nj_tsc_clock_duration(clock, now - c->compared_tsc) > NJ_SEC) {
        c->compared_tsc = now;
        c->compared_ns = nj_os_clock_gettime_ns(CLOCK_REALTIME);
    }
    return tsc < c->compared_tsc
               ? c->compared_ns - nj_tsc_clock_duration(clock, c->compared_tsc - tsc)
               : c->compared_ns + nj_tsc_clock_duration(clock, tsc - c->compared_tsc);
}

static void format(void *of, uint32_t lcore, const void *record, struct nj__tap_out *out)
{
    struct nj_mgmt_capture *c = of;
    const struct nj_captured *p = record;
    const struct nj__pcapng_packet packet = {
        .interface = c->interface_of[port_of(c->view, lcore)],
        .utc_ns = utc_ns(c, p->tsc),
        .data = p->data,
        .n_kept = p->n_kept,
        .n_bytes = p->n_bytes,
        .is_sent = p->is_sent,
    };

    out->n += nj__pcapng_packet(room(out), &packet);
}

static void tail(void *of, const struct nj__taps *taps, struct nj__tap_out *out)
{
    const struct nj_mgmt_capture *c = of;
    const struct nj_mgmt_view *v = c->view;

    for (uint32_t k = 0; k < v->n_ports; k++) {
        struct nj__pcapng_statistics s = {.interface = c->interface_of[k],
                                          .begun_ns = c->begun_ns,
                                          .ended_ns = nj_os_clock_gettime_ns(CLOCK_REALTIME)};
        if (!is_in(c, k))
            continue;
        for (uint32_t i = v->port[k].first; i < v->port[k].first + v->port[k].n_shards; i++) {
            s.n_captured += nj__taps_n_records(taps, i);
            s.n_dropped += nj__taps_n_lost(taps, i);
        }
        out->n += nj__pcapng_statistics(room(out), &s);
    }
}

static void release(void *of)
{
}

static const struct nj__tap_kind kind = {"capture", "packet", begin, end,
                                         head,      format,   tail,  release};

/* --- life ------------------------------------------------------------------------------------- */

struct nj_mgmt_capture *nj_mgmt_capture_new(const struct nj_mgmt_view *view)
{
    struct nj_mgmt_capture *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->view = view;
    c->taps = nj__taps_new(view, &kind, c);
    if (c->taps)
        return c;
    free(c);
    return NULL;
}

void nj_mgmt_capture_free(struct nj_mgmt_capture *c)
{
    if (!c)
        return;
    nj__taps_free(c->taps);
    free(c);
}

/* Who asks is in the line of mgmt/change_log.h. */
static void log_begin(const struct nj_mgmt_capture *c)
{
    const struct nj__capture_options *o = &c->options;
    char net[NJ_NETWORK_TEXT_BYTES], port[32] = "all ports", kept[32] = "headers";

    if (o->port >= 0)
        snprintf(port, sizeof port, "port %d", o->port);
    if (o->snaplen != NJ_CAPTURE_HEADERS)
        snprintf(kept, sizeof kept, "%u bytes each", o->snaplen);
    nj_log(NJ_LEVEL_INFO,
           "management: a capture begins: packets of %s at %s, %s, for at most %u s or %" PRIu64
           " packets",
           o->of.bits > 0 ? nj_network_text(&o->of.addr, o->of.bits, net) : "all addresses", port,
           kept, o->seconds, o->n_packets);
}

unsigned nj__capture_begin(struct nj_mgmt_capture *c, const struct nj__capture_options *options,
                           struct nj__mgmt_stream *stream, const char **why)
{
    struct nj__taps_limits limits = {.seconds = options->seconds, .n_max = options->n_packets};
    uint32_t n_in = 0;

    *why = nj__taps_why_busy(c->taps);
    if (*why)
        return 409;
    c->options = *options;
    for (uint32_t i = 0; i < c->view->n_shards; i++) {
        limits.is_in[i] = is_in(c, port_of(c->view, i));
        n_in += limits.is_in[i];
    }
    if (n_in == 0) {
        *why = "the server has no port with this number";
        return 404;
    }
    c->compared_ns = 0;
    c->begun_ns = nj_os_clock_gettime_ns(CLOCK_REALTIME);
    if (!nj__taps_begin(c->taps, &limits, stream)) {
        *why = "not enough memory";
        return 503;
    }
    log_begin(c);
    return 200;
}

bool nj__capture_end(struct nj_mgmt_capture *c)
{
    return nj__taps_end(c->taps);
}

bool nj__capture_tick(struct nj_mgmt_capture *c)
{
    return nj__taps_tick(c->taps);
}
