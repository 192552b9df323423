/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many connections that acknowledge no response, so that mbufs for sending are short. In each round
 * 10 ms pass. New clients of another address are served at once, and those of a far address, which
 * acknowledge after 100 ms, go on.
 */
#define RIG_PEERS   2800
#define RIG_GOT_MAX (16u * 1024u)
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "conn/send_room.h"
#include "support/shard_rig.h"
#include "telem/counters.h"

enum { DATA };

enum {
    TX_MBUFS = 8191, /* half of what an lcore has with jumbo frames */
    ATTACKERS = 2400,
    OF_OTHER_KIND = 1000, /* the last ones: the others use up all but the reserve */
    REQUESTS = 100,
    FAR = 100,
    FAR_ROUNDS = 10, /* of a round trip */
    ROUNDS = 60,
    ROUND_TRIPS_MAX = 10,
};

enum kind { WHOLE_FILE, HTTP1, MANY_REQUESTS, N_KINDS };
static const char *const name[N_KINDS] = {"whole file", "HTTP/1.1", "many requests"};

struct row {
    enum kind kind; /* of the last OF_OTHER_KIND attackers */
    uint32_t n_addresses;
};

static struct rig *r;
static struct rig_peer *attacker[ATTACKERS], *far_away[FAR];
static uint32_t next_stream[FAR];

/* Like rig_settle(), which does not end while a connection waits for mbufs. */
static void some_steps(void)
{
    for (int i = 0; i < 12; i++)
        rig_step(r);
}

static struct rig_peer *connect_from(uint32_t ip, uint16_t port)
{
    struct rig_peer *p = rig_syn_from(r, ip, port);
    uint8_t hello[128];

    some_steps();
    rig_send(r, p, hello, rig_h2_hello(hello));
    some_steps();
    return p;
}

static void ask_and_never_acknowledge(struct rig_peer *p, enum kind kind)
{
    static const char http1[] = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    uint8_t bytes[64 * (REQUESTS + 2)];
    uint32_t n = rig_h2_hello(bytes);

    if (kind == WHOLE_FILE)
        n += rig_h2_get(bytes + n, 1, "/whole");
    for (uint32_t i = 0; kind == MANY_REQUESTS && i < REQUESTS; i++)
        n += rig_h2_get(bytes + n, 2 * i + 1, "/index.html");
    NJ_CHECK(n <= sizeof bytes);
    if (kind == HTTP1)
        memcpy(bytes, http1, n = sizeof http1 - 1);
    p->manual = true;
    for (uint32_t at = 0; at < n; at += 1400)
        rig_send(r, p, bytes + at, nj_min_u32(1400, n - at));
}

static void connect_attackers(const struct row *row)
{
    for (uint32_t i = 0; i < ATTACKERS; i++) {
        attacker[i] = rig_syn_from(r, RIG_PEER_IP + 2 + i % row->n_addresses, (uint16_t)(3000 + i));
        if (i < row->n_addresses || i % 64 == 0) /* a few packets wait for an unknown neighbour */
            some_steps();
    }
    some_steps();
    for (uint32_t i = 0; i < ATTACKERS; i++) {
        ask_and_never_acknowledge(attacker[i],
                                  i < ATTACKERS - OF_OTHER_KIND ? WHOLE_FILE : row->kind);
        if (i % 64 == 0)
            some_steps();
    }
    some_steps();
}

/* Acknowledges what came, and sends the next request. */
static void answer_from_afar(uint32_t i)
{
    if (far_away[i]->ack_due)
        rig_ack(r, far_away[i]);
    if (rig_h2_frames(far_away[i], DATA, NULL) == (next_stream[i] - 1) / 2) {
        rig_get(r, far_away[i], next_stream[i], "/index.html");
        next_stream[i] += 2;
    }
}

/* A tenth of the far clients has a round trip that ends now. */
static void pass_round(uint32_t round)
{
    for (uint32_t i = round % FAR_ROUNDS; i < FAR; i += FAR_ROUNDS)
        answer_from_afar(i);
    r->now += 10 * NJ_MS;
    some_steps();
}

/* Returns the round trips until the response, or ROUND_TRIPS_MAX + 1. */
static uint32_t serve_newcomer(uint32_t *round)
{
    struct rig_peer *p = rig_syn_from(r, RIG_PEER_IP + 100, (uint16_t)(30000 + *round));
    uint8_t bytes[512];
    uint32_t n = 0;

    for (; n <= ROUND_TRIPS_MAX && rig_h2_frames(p, DATA, NULL) == 0; n++) {
        pass_round((*round)++);
        if (p->got_synack && p->snd_nxt == p->snd_una) {
            uint32_t n_bytes = rig_h2_hello(bytes);
            n_bytes += rig_h2_get(bytes + n_bytes, 1, "/index.html");
            rig_send(r, p, bytes, n_bytes);
        }
    }
    rig_seg(r, p, p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    some_steps();
    p->used = false;
    return n;
}

static void attack(const struct row *row)
{
    uint32_t worst = 0, n_far = 0;

    r = rig_alloc(8192, TX_MBUFS);
    struct nj_shard_config c = rig_config(r);
    c.conns_max = 2 * RIG_PEERS;
    rig_new_with(r, &c);
    for (uint32_t i = 0; i < FAR; i++) {
        far_away[i] = connect_from(RIG_PEER_IP + 101, (uint16_t)(1000 + i));
        far_away[i]->manual = true;
        next_stream[i] = 1;
    }
    connect_attackers(row);
    uint32_t n_left = nj__tx_mbufs_left(&r->s->conns);
    for (uint32_t round = 0; round < ROUNDS;) {
        uint32_t n_trips = serve_newcomer(&round);
        worst = n_trips > worst ? n_trips : worst;
    }
    for (uint32_t i = 0; i < FAR; i++) {
        cr_expect(!far_away[i]->got_rst && !far_away[i]->got_fin, "far client %u", i);
        n_far += rig_h2_frames(far_away[i], DATA, NULL);
    }
    cr_log_info("%s, %u addresses: %u mbufs left, %u round trips, %u responses far away\n",
                name[row->kind], row->n_addresses, n_left, worst, n_far);
    cr_expect_leq(n_left, TX_MBUFS / 8, "mbufs are short");
    cr_expect_leq(worst, ROUND_TRIPS_MAX, "%s, %u addresses: %u round trips", name[row->kind],
                  row->n_addresses, worst);
    cr_expect_geq(n_far, FAR / 2, "%u responses", n_far);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 0, "nobody is reset in so short a time");
    rig_free(r);
}

ParameterizedTestParameters(conn_unacknowledged, others_are_served)
{
#if defined(__SANITIZE_ADDRESS__) /* all rows take 17 s */
    static const uint32_t n_addresses[] = {64};
#else
    static const uint32_t n_addresses[] = {1, 2, 8, 64};
#endif
    static struct row row[N_KINDS * NJ_ARRAY_LEN(n_addresses)];
    uint32_t n = 0;

    for (enum kind kind = 0; kind < N_KINDS; kind++)
        for (uint32_t i = 0; i < NJ_ARRAY_LEN(n_addresses); i++)
            row[n++] = (struct row){kind, n_addresses[i]};
    return cr_make_param_array(struct row, row, n);
}

ParameterizedTest(struct row *row, conn_unacknowledged, others_are_served)
{
    attack(row);
}
