/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack under the sockets: its clock, its packets, and waiting calls. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "script/so_world.h"
#include "support/mbuf_env.h"
#include "wire/emit.h"

#define START         (1000000 * NJ_SEC) /* the clock does not start at 0 */
#define IP4_BYTES_MIN 20u
#define IP6_BYTES     40u
#define IP_V4         4
#define IP_V6         6

static const struct rte_ether_addr our_mac = {{2, 0, 0, 0, 0, 1}};
static const struct rte_ether_addr their_mac = {{2, 0, 0, 0, 0, 2}};

/* --- IP packets ----------------------------------------------------------------------------- */

static void emit(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    struct so_world *w = ctx;

    nj_ip_prepend(m, ip, IPPROTO_TCP, 0);
    NJ_CHECK(m->pkt_len <= w->tcp.cfg.mtu && m->pkt_len <= SO_PACKET_MAX);
    if (w->n_out == SO_OUT_MAX) { /* a script that reads no packets */
        w->out_first = (w->out_first + 1) % SO_OUT_MAX;
        w->n_out--;
    }
    struct out_packet *o = &w->out[(w->out_first + w->n_out++) % SO_OUT_MAX];
    o->at = now;
    o->n_bytes = m->pkt_len;
    const void *bytes = rte_pktmbuf_read(m, 0, m->pkt_len, o->bytes);
    if (bytes != o->bytes)
        memcpy(o->bytes, bytes, o->n_bytes);
    rte_pktmbuf_free(m);
}

static uint32_t room(void *ctx)
{
    (void)ctx;
    return SO_OUT_MAX;
}

static struct nj_flow *find(struct so_world *w, const struct nj_tuple *tuple)
{
    return nj_flow_find(&w->tcp.flows, nj_flow_hash(&w->tcp.flows, tuple), tuple);
}

static void free_block(void *addr, void *block)
{
    (void)addr;
    free(block);
}

/* An mbuf of the pool, or with a larger packet one with a buffer of its own. */
static struct rte_mbuf *mbuf_for(struct so_world *w, size_t n)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(w->rx_pool);
    struct {
        struct rte_mbuf_ext_shared_info shared;
        uint8_t buf[];
    } * block;

    if (!m || n <= rte_pktmbuf_tailroom(m))
        return m;
    block = malloc(sizeof *block + RTE_PKTMBUF_HEADROOM + n);
    NJ_CHECK(block);
    block->shared.free_cb = free_block;
    block->shared.fcb_opaque = block;
    rte_mbuf_ext_refcnt_set(&block->shared, 1);
    rte_pktmbuf_attach_extbuf(m, block->buf, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + n),
                              &block->shared);
    m->data_off = RTE_PKTMBUF_HEADROOM;
    return m;
}

/* Space for `n` bytes after that header. */
static struct rte_mbuf *frame_of(struct so_world *w, const struct rte_ether_hdr *eth,
                                 const uint8_t *bytes, size_t n)
{
    struct rte_mbuf *m = mbuf_for(w, sizeof *eth + n);

    if (m) {
        char *to = rte_pktmbuf_append(m, (uint16_t)(sizeof *eth + n));
        memcpy(to, eth, sizeof *eth);
        memcpy(to + sizeof *eth, bytes, n);
    }
    return m;
}

/* The parser needs a frame and an interface: both are made for the packet, since packetdrill uses
 * arbitrary addresses. */
static void take_packet(struct so_world *w, const uint8_t *bytes, size_t n, bool v6)
{
    struct nj_iface iface = {.mac = our_mac, .mtu = w->tcp.cfg.mtu, .ip6 = v6, .n_addrs = 1};
    struct rte_ether_hdr eth = {our_mac, their_mac,
                                v6 ? RTE_BE16(RTE_ETHER_TYPE_IPV6) : RTE_BE16(RTE_ETHER_TYPE_IPV4)};
    struct nj_packet p;
    uint32_t dst_be;

    memcpy(&dst_be, bytes + 16, sizeof dst_be);
    iface.addr[0] =
        (struct nj_iface_addr){.ip = nj_addr_from_v4(dst_be), .prefix_bits = v6 ? 64 : 16};
    if (v6)
        memcpy(iface.addr[0].ip.b, bytes + 24, sizeof iface.addr[0].ip.b);
    struct rte_mbuf *m = frame_of(w, &eth, bytes, n);
    if (!m)
        return;
    nj_packet_parse(&iface, m, &p);
    if (p.kind == NJ_PACKET_TCP) {
        nj_tcp_input(&w->tcp, find(w, &p.tcp.tuple), m, &p.tcp, w->now);
        return;
    }
    if (p.kind == NJ_PACKET_DROP)
        nj_count(&w->counters, p.drop);
    struct nj_flow *f = p.kind == NJ_PACKET_ICMP_ERROR ? find(w, &p.icmp_error.tuple) : NULL;
    struct nj_tcb *t = nj_flow_tcb(f);
    if (t)
        nj_tcp_icmp(&w->tcp, t, &p.icmp_error);
    rte_pktmbuf_free(m);
}

int so_netdev_send(void *arg, const void *bytes, size_t n)
{
    struct so_world *w = arg;
    bool v6 = bytes && n > 0 && *(const uint8_t *)bytes >> 4 == IP_V6;

    if (!bytes)
        return so_fail(EFAULT);
    if (n < (v6 ? IP6_BYTES : IP4_BYTES_MIN) || n > SO_RECEIVED_MAX ||
        (!v6 && *(const uint8_t *)bytes >> 4 != IP_V4))
        return so_fail(EINVAL);
    so_lock(w);
    take_packet(w, bytes, n, v6);
    so_turn(w);
    so_unlock(w);
    return 0;
}

static bool something_out(void *arg)
{
    return ((struct so_world *)arg)->n_out > 0;
}

int so_netdev_receive(void *arg, void *bytes, size_t *n, long long *time_us)
{
    struct so_world *w = arg;

    so_lock(w);
    if (!so_wait(w, something_out, w, w->now + SO_NEVER_US * NJ_US)) {
        *n = 0; /* no event is left that could make it send */
        so_unlock(w);
        return 0;
    }
    const struct out_packet *o = &w->out[w->out_first];
    size_t n_copy = o->n_bytes < *n ? o->n_bytes : *n;
    memcpy(bytes, o->bytes, n_copy);
    *n = n_copy;
    *time_us = (long long)(o->at / NJ_US);
    w->out_first = (w->out_first + 1) % SO_OUT_MAX;
    w->n_out--;
    so_unlock(w);
    return 0;
}

/* --- the stack -------------------------------------------------------------------------------- */

static void take_events(struct so_world *w)
{
    struct nj_list batch;
    struct nj_tcb *t;
    uint8_t events;

    nj_list_init(&batch);
    nj_tcp_take_ready_batch(&w->tcp, &batch);
    while ((t = nj_tcp_next_ready(&batch, &events)))
        so_sock_events(w, t, events);
}

static bool waits(const struct so_world *w, uint64_t number)
{
    for (const struct waiter *x = w->waiters; x; x = x->next)
        if (x->number == number)
            return true;
    return false;
}

/* Lets each blocked call whose condition is true continue, and waits until it has returned. */
static void let_waiters_go(struct so_world *w)
{
    for (struct waiter *x = w->waiters; x;) {
        if (x->go || !(x->ready(x->arg) || w->now >= x->deadline || w->ending)) {
            x = x->next;
            continue;
        }
        uint64_t number = x->number; /* its stack frame may be reused at once */
        x->go = true;
        pthread_cond_broadcast(&w->turn);
        while (waits(w, number))
            pthread_cond_wait(&w->turn, &w->lock);
        x = w->waiters; /* its effects may let another call continue */
    }
}

void so_turn(struct so_world *w)
{
    take_events(w); /* caused by input: the peer ended these */
    w->in_tick = true;
    nj_tcp_tick(&w->tcp, w->now);
    take_events(w);
    w->in_tick = false;
    nj_tcp_output_pending(&w->tcp, w->now);
    take_events(w);
    let_waiters_go(w);
}

/* Time of the next timer, of the stack or of a blocked call's deadline. */
static nj_ns next_event(const struct so_world *w)
{
    nj_ns next = nj_tcp_next_deadline(&w->tcp);
    for (const struct waiter *x = w->waiters; x; x = x->next)
        next = x->deadline < next ? x->deadline : next;
    return next;
}

void so_advance(struct so_world *w, nj_ns t)
{
    nj_ns next;

    while ((next = next_event(w)) <= t) {
        w->now = next > w->now ? next : w->now + NJ_US;
        if (w->now > t)
            break;
        so_turn(w);
    }
    w->now = t;
}

static bool wait_blocked(struct so_world *w, struct waiter *x)
{
    x->number = ++w->n_waits;
    x->next = w->waiters;
    w->waiters = x;
    while (!x->go)
        pthread_cond_wait(&w->turn, &w->lock);
    w->returns = true;
    w->returning = pthread_self();
    w->returned_at = w->now;
    struct waiter **at = &w->waiters;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    pthread_cond_broadcast(&w->turn);
    return x->ready(x->arg);
}

bool so_wait(struct so_world *w, bool (*ready)(void *), void *arg, nj_ns deadline)
{
    struct waiter x = {.ready = ready, .arg = arg, .deadline = deadline};

    if (ready(arg))
        return true;
    if (w->ending || deadline <= w->now)
        return false;
    if (!pthread_equal(pthread_self(), w->first))
        return wait_blocked(w, &x);
    nj_ns limit = w->now + SO_NEVER_US * NJ_US;
    while (!ready(arg) && w->now < deadline && w->now < limit) {
        nj_ns next = next_event(w);
        if (next == NJ_NEVER && deadline == NJ_NEVER)
            break;
        if (next > deadline)
            next = deadline;
        so_advance(w, next > w->now ? next : w->now + NJ_US);
    }
    return ready(arg);
}

/* --- the clock -------------------------------------------------------------------------------- */

int so_usleep(void *arg, useconds_t us)
{
    struct so_world *w = arg;

    so_lock(w);
    so_advance(w, w->now + us * NJ_US);
    so_unlock(w);
    return 0;
}

/* A thread that polls the clock advances it by a microsecond per call. A thread whose call was
 * blocked gets once the time of that call's return: the other thread may have advanced the clock
 * since. */
int so_gettimeofday(void *arg, struct timeval *tv, struct timezone *tz)
{
    struct so_world *w = arg;
    nj_ns now;

    (void)tz;
    so_lock(w);
    if (w->returns && pthread_equal(pthread_self(), w->returning)) {
        w->returns = false;
        now = w->returned_at;
    } else {
        so_advance(w, w->now + NJ_US);
        now = w->now;
    }
    so_unlock(w);
    tv->tv_sec = (time_t)(now / NJ_SEC);
    tv->tv_usec = (suseconds_t)(now % NJ_SEC / NJ_US);
    return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

static bool take_flag(struct so_world *w, struct nj_tcp_config *c, char *word)
{
    char *value = strchr(word, '=');
    uint32_t ip_be;

    if (!value)
        return false;
    *value++ = '\0';
    if (strcmp(word, "local") == 0 && inet_pton(AF_INET6, value, &w->local) == 1)
        return true;
    if (strcmp(word, "local") == 0) {
        if (inet_pton(AF_INET, value, &ip_be) != 1)
            return false;
        w->local = nj_addr_from_v4(ip_be);
        return true;
    }
    if (strcmp(word, "start_us") == 0) { /* of the clock: moves the initial sequence numbers */
        w->now = strtoull(value, NULL, 0) * NJ_US;
        return true;
    }
    return probe_configure(c, word, value);
}

static bool take_flags(struct so_world *w, struct nj_tcp_config *c, const char *flags)
{
    char text[512], *rest = NULL;

    snprintf(text, sizeof text, "%s", flags ? flags : "");
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (!take_flag(w, c, word)) {
            fprintf(stderr, "libnightjar-packetdrill: --so_flags: unknown word %s\n", word);
            return false;
        }
    }
    return true;
}

bool so_stack_init(struct so_world *w, const char *flags)
{
    struct nj_tcp_config c = {
        .counters = &w->counters,
        .flow_key = {{1}},
        .isn_key = {{2}},
        .seed = 3,
        .conns_max = 256,
        .half_open_max = 64,
        .mtu = 1500,
        .time_wait = 60 * NJ_SEC,
        .emit = emit,
        .room = room,
        .ctx = w,
    };

    w->now = START;
    w->local = nj_addr_from_v4(htonl(0xc0a80001)); /* 192.168.0.1 */
    w->next_port = 33000;
    if (!take_flags(w, &c, flags))
        return false;
    w->pool = nj_test_pool(SO_MBUFS);
    w->rx_pool = nj_test_pool(SO_MBUFS);
    w->out = calloc(SO_OUT_MAX, sizeof *w->out);
    w->anchor = memfd_create("nightjar-packetdrill", MFD_CLOEXEC);
    c.mp = w->pool;
    if (w->out && w->anchor >= 0 && nj_tcp_init(&w->tcp, &c, w->now))
        return true;
    if (w->anchor >= 0)
        close(w->anchor);
    free(w->out);
    return false;
}

void so_stack_fini(struct so_world *w)
{
    nj_tcp_fini(&w->tcp);
    nj_test_pool_free(w->pool);
    nj_test_pool_free(w->rx_pool);
    free(w->out);
    close(w->anchor);
}
