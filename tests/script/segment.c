/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses and formats segments in tcpdump's notation, as packetdrill writes them. */
#include <stdarg.h>
#include <string.h>

#include "wire/packet.h"

#include "script/script.h"

static const struct {
    char letter;
    uint8_t flag;
} flag_letters[] = {
    {'F', NJ_TCP_FIN}, {'S', NJ_TCP_SYN}, {'R', NJ_TCP_RST}, {'P', NJ_TCP_PSH},
    {'.', NJ_TCP_ACK}, {'U', NJ_TCP_URG}, {'E', NJ_TCP_ECE}, {'W', NJ_TCP_CWR},
};

static const char *const ecn_words[] = {"noecn", "ect1", "ect0", "ce"};

static const struct {
    const char *name;
    uint8_t type, code;
} icmp_names[] = {
    {"net_unreachable", 3, 0},
    {"host_unreachable", 3, 1},
    {"protocol_unreachable", 3, 2},
    {"port_unreachable", 3, 3},
    {"frag_needed", 3, 4},
    {"source_route_failed", 3, 5},
    {"net_unreachable_for_tos", 3, 11},
    {"host_unreachable_for_tos", 3, 12},
    {"admin_prohibited", 3, 13},
};

/* --- reading -----------------------------------------------------------------------------------
 */

static void bracket_words(struct script *s, struct pkt *p)
{
    char word[SCRIPT_WORD_MAX];

    do {
        if (!lex_word(s, word))
            script_fail(s, s->line, "expected a word such as ect0 before \"%.20s\"", s->p);
        bool known = false;
        for (unsigned i = 0; i < NJ_ARRAY_LEN(ecn_words); i++) {
            if (strcmp(word, ecn_words[i]) == 0) {
                p->ecn = (int)i;
                known = true;
            }
        }
        if (strcmp(word, "badsum") == 0)
            known = p->bad_sum = true;
        if (!known)
            script_fail(s, s->line, "unknown word [%s]", word);
    } while (lex_is(s, ","));
    lex_want(s, "]");
}

static void range(struct script *s, struct pkt *p)
{
    p->seq = (uint32_t)lex_want_number(s, "the sequence number");
    lex_want(s, ":");
    uint32_t end = (uint32_t)lex_want_number(s, "the end of the segment");
    lex_want(s, "(");
    p->n_bytes = (uint32_t)lex_want_number(s, "the length");
    lex_want(s, ")");
    if (end - p->seq != p->n_bytes)
        script_fail(s, s->line, "%u:%u is not of %u bytes", p->seq, end, p->n_bytes);
    if (p->n_bytes > SCRIPT_SEGMENT_MAX)
        script_fail(s, s->line, "%u bytes in a segment", p->n_bytes);
}

static void flags(struct script *s, struct pkt *p)
{
    lex_space(s);
    if (*s->p == '-') { /* none */
        s->p++;
        return;
    }
    for (; *s->p && *s->p != ' '; s->p++) {
        bool known = false;
        for (unsigned i = 0; i < NJ_ARRAY_LEN(flag_letters); i++) {
            if (flag_letters[i].letter == *s->p) {
                p->flags |= flag_letters[i].flag;
                known = true;
            }
        }
        if (!known)
            script_fail(s, s->line, "'%c' is no TCP flag", *s->p);
    }
}

static void sack_blocks(struct script *s, struct opt *o)
{
    int64_t first;

    o->kind = OPT_SACK;
    while (lex_number(s, &first)) {
        if (o->n_sack == NJ_ARRAY_LEN(o->sack))
            script_fail(s, s->line, "more than four SACK blocks");
        lex_want(s, ":");
        o->sack[o->n_sack][0] = (uint32_t)first;
        o->sack[o->n_sack++][1] = (uint32_t)lex_want_number(s, "the end of the block");
    }
    o->n_bytes = (uint8_t)(2 + 8 * o->n_sack);
}

static void option(struct script *s, struct opt *o)
{
    if (lex_is(s, "nop")) {
        *o = (struct opt){.kind = OPT_NOP, .n_bytes = 1};
    } else if (lex_is(s, "eol")) {
        *o = (struct opt){.kind = OPT_EOL, .n_bytes = 1};
    } else if (lex_is(s, "mss")) {
        *o = (struct opt){.kind = OPT_MSS, .n_bytes = 4, .a = (uint32_t)lex_want_number(s, "mss")};
    } else if (lex_is(s, "wscale")) {
        *o = (struct opt){
            .kind = OPT_WSCALE, .n_bytes = 3, .a = (uint32_t)lex_want_number(s, "wscale")};
    } else if (lex_is(s, "sackOK")) {
        *o = (struct opt){.kind = OPT_SACKOK, .n_bytes = 2};
    } else if (lex_is(s, "sack")) {
        sack_blocks(s, o);
    } else if (lex_is(s, "TS")) {
        *o = (struct opt){.kind = OPT_TS, .n_bytes = 10};
        lex_want(s, "val");
        o->a = (uint32_t)lex_want_number(s, "TS val");
        lex_want(s, "ecr");
        o->b = (uint32_t)lex_want_number(s, "TS ecr");
    } else if (lex_is(s, "opt")) { /* our extension: any kind, any length, zeros as data */
        o->kind = (uint8_t)lex_want_number(s, "the kind");
        lex_want(s, ":");
        o->n_bytes = (uint8_t)lex_want_number(s, "the length");
    } else {
        script_fail(s, s->line, "no TCP option begins with \"%.20s\"", s->p);
    }
}

static void options(struct script *s, struct pkt *p)
{
    if (lex_is(s, "...")) {
        p->any_opts = true;
        lex_want(s, ">");
        return;
    }
    if (lex_is(s, ">"))
        return;
    do {
        if (p->n_opts == SCRIPT_OPTS_MAX)
            script_fail(s, s->line, "more than %u options", SCRIPT_OPTS_MAX);
        option(s, &p->opt[p->n_opts++]);
    } while (lex_is(s, ","));
    lex_want(s, ">");
}

static void icmp(struct script *s, struct pkt *p)
{
    char word[SCRIPT_WORD_MAX];

    p->is_icmp = true;
    lex_want(s, "unreachable");
    if (!lex_word(s, word))
        script_fail(s, s->line, "icmp unreachable: which one?");
    for (unsigned i = 0; i < NJ_ARRAY_LEN(icmp_names); i++) {
        if (strcmp(word, icmp_names[i].name) == 0) {
            p->icmp_type = icmp_names[i].type;
            p->icmp_code = icmp_names[i].code;
            if (lex_is(s, "mtu"))
                p->icmp_mtu = (uint16_t)lex_want_number(s, "mtu");
            return;
        }
    }
    script_fail(s, s->line, "unknown icmp unreachable %s", word);
}

static bool range_in_brackets(struct script *s)
{
    const char *p = s->p + 1;
    return *s->p == '[' && *p >= '0' && *p <= '9';
}

void segment_parse(struct script *s, struct pkt *p)
{
    p->ecn = -1;
    lex_space(s);
    if (range_in_brackets(s)) {
        s->p++;
        range(s, p);
        lex_want(s, "]");
        lex_want(s, "icmp");
        icmp(s, p);
        return;
    }
    if (lex_is(s, "["))
        bracket_words(s, p);
    if (lex_is(s, "icmp")) {
        icmp(s, p);
        return;
    }
    flags(s, p);
    range(s, p);
    if (lex_is(s, "ack")) {
        p->ack = (uint32_t)lex_want_number(s, "ack");
        if (!(p->flags & NJ_TCP_ACK))
            script_fail(s, s->line, "an ack number needs the flag '.'");
    }
    if (lex_is(s, "win")) {
        p->win = (uint32_t)lex_want_number(s, "win");
        p->has_win = true;
        if (p->win > UINT16_MAX)
            script_fail(s, s->line, "win %u does not fit the field", p->win);
    }
    if (lex_is(s, "urg")) {
        p->urg = (uint32_t)lex_want_number(s, "urg");
        p->flags |= NJ_TCP_URG;
    }
    if (lex_is(s, "<"))
        options(s, p);
    if (p->inbound && !p->has_win && !(p->flags & NJ_TCP_RST))
        script_fail(s, s->line, "an inbound segment needs a window");
    if (p->inbound && p->any_opts)
        script_fail(s, s->line, "<...> is for outbound segments");
}

/* --- printing ----------------------------------------------------------------------------------
 */

struct sink {
    char *to;
    size_t left;
};

static void NJ_PRINTF(2, 3) put(struct sink *k, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(k->to, k->left, format, ap);
    va_end(ap);
    size_t took = n > 0 && (size_t)n < k->left ? (size_t)n : k->left - 1;
    k->to += took;
    k->left -= took;
}

static void print_option(struct sink *k, const struct opt *o)
{
    switch (o->kind) {
    case OPT_EOL:
        put(k, "eol");
        break;
    case OPT_NOP:
        put(k, "nop");
        break;
    case OPT_MSS:
        put(k, "mss %u", o->a);
        break;
    case OPT_WSCALE:
        put(k, "wscale %u", o->a);
        break;
    case OPT_SACKOK:
        put(k, "sackOK");
        break;
    case OPT_SACK:
        put(k, "sack");
        for (unsigned i = 0; i < o->n_sack; i++)
            put(k, " %u:%u", o->sack[i][0], o->sack[i][1]);
        break;
    case OPT_TS:
        put(k, "TS val %u ecr %u", o->a, o->b);
        break;
    default:
        put(k, "opt %u:%u", o->kind, o->n_bytes);
    }
}

void segment_print(const struct pkt *p, char *to, size_t n)
{
    struct sink k = {to, n};

    put(&k, "%c ", p->inbound ? '<' : '>');
    if (p->ecn > 0)
        put(&k, "[%s] ", ecn_words[p->ecn]);
    if (p->is_icmp) {
        put(&k, "[%u:%u(%u)] icmp type %u code %u", p->seq, p->seq + p->n_bytes, p->n_bytes,
            p->icmp_type, p->icmp_code);
        return;
    }
    for (unsigned i = 0; i < NJ_ARRAY_LEN(flag_letters); i++)
        if (p->flags & flag_letters[i].flag)
            put(&k, "%c", flag_letters[i].letter);
    put(&k, "%s %u:%u(%u)", p->flags ? "" : "-", p->seq, p->seq + p->n_bytes, p->n_bytes);
    if (p->flags & NJ_TCP_ACK)
        put(&k, " ack %u", p->ack);
    if (p->has_win)
        put(&k, " win %u", p->win);
    if (p->urg)
        put(&k, " urg %u", p->urg);
    if (p->any_opts)
        put(&k, " <...>");
    for (uint32_t i = 0; i < p->n_opts; i++) {
        put(&k, "%s", i ? "," : " <");
        print_option(&k, &p->opt[i]);
    }
    if (p->n_opts)
        put(&k, ">");
}
