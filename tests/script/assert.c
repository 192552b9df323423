/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `%{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%`: comparisons of numbers and of the fields of
 * TCP_INFO of the last connection. What stands after the comma is Python's message, and is skipped.
 *
 *   assertion   = "assert" comparison { "and" comparison } [ "," rest of the line ]
 *   comparison  = sum ( "==" | "!=" | "<=" | ">=" | "<" | ">" ) sum
 *   sum         = product { ( "+" | "-" ) product }
 *   product     = atom { ( "*" | "/" ) atom }
 *   atom        = number | constant | field | "(" sum ")"
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "script/script.h"

#define F(name)                                                                                    \
    {                                                                                              \
#name, offsetof(struct tcp_info, name), sizeof(((struct tcp_info *)0)->name)               \
    }

static const struct {
    const char *name;
    size_t at, n_bytes;
} fields[] = {
    F(tcpi_state),         F(tcpi_ca_state),       F(tcpi_retransmits),   F(tcpi_probes),
    F(tcpi_backoff),       F(tcpi_options),        F(tcpi_rto),           F(tcpi_ato),
    F(tcpi_snd_mss),       F(tcpi_rcv_mss),        F(tcpi_unacked),       F(tcpi_sacked),
    F(tcpi_lost),          F(tcpi_retrans),        F(tcpi_pmtu),          F(tcpi_rtt),
    F(tcpi_rttvar),        F(tcpi_snd_ssthresh),   F(tcpi_snd_cwnd),      F(tcpi_advmss),
    F(tcpi_reordering),    F(tcpi_total_retrans),  F(tcpi_notsent_bytes), F(tcpi_min_rtt),
    F(tcpi_bytes_acked),   F(tcpi_bytes_received), F(tcpi_segs_out),      F(tcpi_segs_in),
    F(tcpi_bytes_retrans), F(tcpi_dsack_dups),     F(tcpi_reord_seen),    F(tcpi_delivered),
    F(tcpi_delivered_ce),
};

struct expr {
    struct run *r;
    struct script *s;
    int line; /* of the assertion: the cursor's own is restored afterwards */
    struct tcp_info info;
};

static int64_t sum(struct expr *x, unsigned depth);

static bool field(const struct expr *x, const char *name, int64_t *value)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(fields); i++) {
        if (strcmp(fields[i].name, name) == 0) {
            uint64_t v = 0; /* little endian, as the whole of this program's world */
            memcpy(&v, (const char *)&x->info + fields[i].at, fields[i].n_bytes);
            *value = (int64_t)v;
            return true;
        }
    }
    /* These two are bit-fields, which have no offset. */
    if (strcmp(name, "tcpi_snd_wscale") == 0)
        *value = x->info.tcpi_snd_wscale;
    else if (strcmp(name, "tcpi_rcv_wscale") == 0)
        *value = x->info.tcpi_rcv_wscale;
    else
        return false;
    return true;
}

static int64_t atom(struct expr *x, unsigned depth)
{
    char word[SCRIPT_WORD_MAX];
    int64_t n;

    if (depth > SCRIPT_DEPTH_MAX)
        script_fail(x->s, x->line, "parentheses deeper than %u", SCRIPT_DEPTH_MAX);
    if (lex_number(x->s, &n))
        return n;
    if (lex_is(x->s, "(")) {
        n = sum(x, depth + 1);
        lex_want(x->s, ")");
        return n;
    }
    if (!lex_word(x->s, word) || (!field(x, word, &n) && !name_value(word, &n)))
        script_fail(x->s, x->line, "assert: \"%.20s\" is neither number nor field", x->s->p);
    return n;
}

static int64_t product(struct expr *x, unsigned depth)
{
    int64_t n = atom(x, depth);

    for (;;) {
        if (lex_is(x->s, "*")) {
            n *= atom(x, depth);
        } else if (lex_is(x->s, "/")) {
            int64_t by = atom(x, depth);
            if (by == 0)
                script_fail(x->s, x->line, "assert: division by zero");
            n /= by;
        } else {
            return n;
        }
    }
}

static int64_t sum(struct expr *x, unsigned depth)
{
    int64_t n = product(x, depth);

    for (;;) {
        if (lex_is(x->s, "+"))
            n += product(x, depth);
        else if (lex_is(x->s, "-"))
            n -= product(x, depth);
        else
            return n;
    }
}

static void comparison(struct expr *x)
{
    static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
    const char *begin = x->s->p;
    int64_t a = sum(x, 0);
    unsigned op = 0;

    while (op < NJ_ARRAY_LEN(ops) && !lex_is(x->s, ops[op]))
        op++;
    if (op == NJ_ARRAY_LEN(ops))
        script_fail(x->s, x->line, "assert: a comparison should stand before \"%.20s\"", x->s->p);
    int64_t b = sum(x, 0);
    const bool holds[] = {a == b, a != b, a <= b, a >= b, a<b, a> b};
    if (!holds[op])
        script_fail(x->s, x->line, "assert%.*s: %lld %s %lld does not hold", (int)(x->s->p - begin),
                    begin, (long long)a, ops[op], (long long)b);
}

void run_assert(struct run *r, const struct event *e)
{
    struct script *s = r->s;
    struct expr x = {.r = r, .s = s, .line = e->line};
    socklen_t n = sizeof x.info;
    const char *p = s->p;
    int line = s->line;

    if (r->call.getsockopt(r->call.userdata, run_live_fd(r, r->last_conn), IPPROTO_TCP, TCP_INFO,
                           &x.info, &n) != 0)
        script_fail(s, e->line, "assert: there is no connection to ask for TCP_INFO");
    s->p = e->text;
    while (!lex_is(s, "}%")) {
        lex_want(s, "assert");
        do
            comparison(&x);
        while (lex_is(s, "and"));
        if (lex_is(s, ",")) {
            size_t rest = strcspn(s->p, "\n");
            const char *end = strstr(s->p, "}%");
            s->p += end < s->p + rest ? (size_t)(end - s->p) : rest;
        }
        lex_is(s, ";");
    }
    s->p = p;
    s->line = line;
}
