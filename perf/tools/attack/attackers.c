/* SPDX-License-Identifier: BSD-3-Clause */
#include "attackers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define HOST_FIRST     0xc6120100u /* 198.18.1.0 */
#define N_HOSTS        200u
#define PORT_FIRST     10000u
#define N_PORTS        50000u
#define OPENING_MAX    256u /* handshakes at a time */
#define STEP_OPENS_MAX 1u
#define STEP_SENDS_MAX 2u /* so that a step is short: the innocents share this lcore */
#define BEHIND_MAX     256.0
#define QUEUED_MAX     8u /* mbufs that a connection has under way */
#define DEPTH_MAX      64u
#define ENDS_MAX       64u /* resets per step */

/* What a connection sends at its begin, and, if it goes on, in each piece. */
struct attack_kind {
    const char *name;
    const char *begin, *path, *rest; /* without a path: that of the file */
    const char *piece;
    bool repeats, is_h2;
};

static const struct attack_kind kinds[] = {
    {.name = "slowloris", .begin = "GET ", .rest = " HTTP/1.1\r\nhost: bench\r\nx: ", .piece = "a"},
    {.name = "slow-post",
     .begin = "POST ",
     .path = "/upload",
     .rest = " HTTP/1.1\r\nhost: bench\r\ncontent-length: 1000000\r\n\r\n",
     .piece = "a"},
    {.name = "idle", .begin = "GET ", .rest = " HTTP/1.1\r\nhost: bench\r\n\r\n", .piece = ""},
    {.name = "flood",
     .piece = "GET /no-such-file HTTP/1.1\r\nhost: bench\r\n\r\n",
     .repeats = true},
    {.name = "h2", .piece = "", .is_h2 = true},
};

bool attackers_init(struct attackers *a, struct hosts *hosts, uint16_t port, const char *path,
                    uint32_t n_max)
{
    *a = (struct attackers){.hosts = hosts, .port = port, .path = path, .n_max = n_max};
    a->slot = calloc(n_max, sizeof *a->slot);
    a->vacant = calloc(n_max, sizeof *a->vacant);
    return a->slot && a->vacant;
}

void attackers_fini(struct attackers *a)
{
    free(a->slot);
    free(a->vacant);
    free(a->h2);
}

/* --- begin and end ------------------------------------------------------------------------- */

static const struct attack_kind *kind_of(const char *name)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static void make_piece(struct attackers *a, uint32_t depth)
{
    uint32_t n = (uint32_t)strlen(a->kind->piece);

    a->n_message = 0;
    for (uint32_t i = 0; i < (a->kind->repeats ? depth : 1); i++) {
        memcpy(a->message + a->n_message, a->kind->piece, n);
        a->n_message += n;
    }
}

bool attackers_begin(struct attackers *a, const char *kind, uint32_t n, double open_rate,
                     double piece_rate, uint32_t depth, nj_ns now)
{
    a->kind = kind_of(kind);
    if (!a->kind || n == 0 || n > a->n_max || depth == 0 || depth > DEPTH_MAX)
        return false;
    make_piece(a, depth);
    if (a->kind->is_h2) {
        free(a->h2);
        a->h2 = calloc(n, sizeof *a->h2);
        if (!a->h2)
            return false;
    }
    memset(a->slot, 0, n * sizeof *a->slot);
    for (uint32_t i = 0; i < n; i++) {
        a->vacant[i] = n - 1 - i;
        a->slot[i].party.kind = PARTY_ATTACKER;
        a->slot[i].h2 = a->kind->is_h2 ? &a->h2[i] : NULL;
    }
    a->n_slots = a->n_vacant = n;
    a->next = 0;
    a->opens_due = a->pieces_due = 0;
    a->open_rate = open_rate;
    a->piece_rate = piece_rate;
    a->stepped_at = now;
    a->n = (struct attack_counts){0};
    return true;
}

bool attackers_end(struct attackers *a, nj_ns now)
{
    uint32_t n_ended = 0;

    if (a->kind)
        a->next = 0;
    a->kind = NULL;
    for (; a->next < a->n_slots && n_ended < ENDS_MAX && hosts_room(a->hosts) > 0; a->next++) {
        struct attacker *t = &a->slot[a->next];
        if (!t->tcb)
            continue;
        nj_tcp_abort(&a->hosts->tcp, t->tcb, now);
        n_ended++;
    }
    return a->n_vacant == a->n_slots;
}

/* --- what attackers send ------------------------------------------------------------------- */

static bool send_text(struct attackers *a, struct attacker *t, const void *data, uint32_t n)
{
    return n == 0 || nj_tcp_send_copy(&a->hosts->tcp, t->tcb, data, n);
}

static void begin_conn(struct attackers *a, struct attacker *t)
{
    const struct attack_kind *k = a->kind;
    uint8_t frames[H2_MESSAGE_BYTES];
    char text[H2_MESSAGE_BYTES];

    if (t->h2) {
        uint32_t n = h2_begin(t->h2, frames);
        send_text(a, t, frames, n);
    }
    if (!k->begin)
        return;
    int n = snprintf(text, sizeof text, "%s%s%s", k->begin, k->path ? k->path : a->path, k->rest);
    send_text(a, t, text, n > 0 && n < (int)sizeof text ? (uint32_t)n : 0);
}

static bool open_one(struct attackers *a, nj_ns now)
{
    uint32_t i = a->vacant[a->n_vacant - 1];
    struct attacker *t = &a->slot[i];
    uint64_t k = a->n_tuples++;

    t->tcb = hosts_connect(a->hosts, HOST_FIRST + (uint32_t)(k % N_HOSTS),
                           (uint16_t)(PORT_FIRST + k / N_HOSTS % N_PORTS), a->port, now);
    if (!t->tcb)
        return false;
    t->tcb->user = &t->party;
    t->open = t->closing = t->answered = false;
    a->n_vacant--;
    a->n_opening++;
    return true;
}

static bool may_send(const struct attackers *a, const struct attacker *t)
{
    if (t->h2 && !h2_may_ask(t->h2))
        return false;
    return nj_tcp_send_queue_mbufs(t->tcb) < QUEUED_MAX && nj_tcp_may_send(t->tcb) &&
           nj_tcp_send_room(t->tcb) >= a->n_message;
}

static void send_piece(struct attackers *a, struct attacker *t, nj_ns now)
{
    uint8_t frames[H2_MESSAGE_BYTES];
    const uint8_t *piece = a->message;
    uint32_t n = a->n_message;

    if (!may_send(a, t)) {
        a->n.held++;
        return;
    }
    if (t->h2) {
        n = h2_ask(t->h2, frames, a->path, now);
        piece = frames;
    }
    if (send_text(a, t, piece, n))
        a->n.pieces++;
    else
        a->n.held++;
}

/* The next open connection in turn, or NULL. */
static struct attacker *next_open(struct attackers *a)
{
    for (uint32_t i = 0; i < a->n_slots; i++) {
        struct attacker *t = &a->slot[a->next];
        a->next = a->next + 1 == a->n_slots ? 0 : a->next + 1;
        if (t->open && !t->closing)
            return t;
    }
    return NULL;
}

static uint32_t send_due(struct attackers *a, nj_ns now)
{
    uint32_t n_sent = 0;

    for (; a->pieces_due >= 1 && a->n_open > 0 && n_sent < STEP_SENDS_MAX; n_sent++) {
        struct attacker *t = next_open(a);
        if (!t || hosts_room(a->hosts) == 0)
            break;
        send_piece(a, t, now);
        a->pieces_due -= 1;
    }
    if (a->pieces_due > BEHIND_MAX) {
        a->n.forgotten += (uint64_t)(a->pieces_due - BEHIND_MAX);
        a->pieces_due = BEHIND_MAX;
    }
    return n_sent;
}

uint32_t attackers_step(struct attackers *a, nj_ns now)
{
    double seconds = (double)(now - a->stepped_at) / (double)NJ_SEC;
    uint32_t n = 0;

    a->stepped_at = now;
    if (!a->kind)
        return 0;
    a->opens_due += seconds * a->open_rate;
    a->pieces_due += seconds * a->piece_rate;
    while (n < STEP_OPENS_MAX && a->opens_due >= 1 && a->n_vacant > 0 &&
           a->n_opening < OPENING_MAX && hosts_room(a->hosts) > 0 && open_one(a, now)) {
        a->opens_due -= 1;
        n++;
    }
    if (a->opens_due > BEHIND_MAX)
        a->opens_due = BEHIND_MAX;
    return n + send_due(a, now);
}

/* --- what the server does ------------------------------------------------------------------ */

static void count_answer(void *ctx, nj_ns sent_at)
{
    struct attackers *a = ctx;
    (void)sent_at;
    a->n.responses++;
}

static void note_status(struct attackers *a, struct attacker *t, const uint8_t *data, uint32_t n)
{
    char digits[4] = {0};

    if (t->answered || n < 12)
        return;
    t->answered = true;
    memcpy(digits, data + 9, 3);
    unsigned long status = strtoul(digits, NULL, 10);
    a->n.status[status < ATTACK_STATUS_MAX ? status : 0]++;
}

/* False: the connection is of no use. */
static bool read_all(struct attackers *a, struct attacker *t)
{
    const uint8_t *data;
    uint32_t n;
    bool good = true;

    while ((n = nj_tcp_recv_peek(t->tcb, &data)) > 0) {
        if (t->h2)
            good = good && h2_input(t->h2, data, n, count_answer, a);
        else
            note_status(a, t, data, n);
        a->n.bytes += n;
        nj_tcp_recv_take(&a->hosts->tcp, t->tcb, n);
    }
    if (t->h2 && t->open) {
        uint8_t frames[H2_MESSAGE_BYTES];
        n = h2_owed(t->h2, frames);
        send_text(a, t, frames, n);
    }
    return good;
}

static void ended(struct attackers *a, struct attacker *t, nj_ns now)
{
    nj_tcp_release(&a->hosts->tcp, t->tcb, now);
    t->tcb = NULL;
    if (!t->open) {
        a->n_opening--;
        a->n.refused++;
    } else if (!t->closing) {
        a->n_open--;
        a->n.by_rst += a->kind != NULL;
    }
    a->vacant[a->n_vacant++] = (uint32_t)(t - a->slot);
}

void attackers_event(struct attackers *a, struct attacker *t, uint8_t events, nj_ns now)
{
    if (events & NJ_TCP_EV_DEAD) {
        ended(a, t, now);
        return;
    }
    if (events & NJ_TCP_EV_OPENED) {
        t->open = true;
        a->n_opening--;
        a->n_open++;
        a->n.opened++;
        nj_tcp_set_ack_events(t->tcb, false);
        if (a->kind)
            begin_conn(a, t);
    }
    bool good = read_all(a, t);
    if (t->closing || (good && !(events & NJ_TCP_EV_PEER_FIN)))
        return;
    t->closing = true;
    a->n_open--;
    a->n.by_fin++;
    nj_tcp_close(&a->hosts->tcp, t->tcb, now);
}
