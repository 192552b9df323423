/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of a head or of a trailer section, and what they say about the message (RFC 9112 2.2, 5, 6,
 * RFC 9110 5).
 *
 * Values are not copied: they point into the bytes that were parsed. Names are written in lower
 * case into the context's scratch memory.
 *
 * An error within a line is reported when that line is complete, and errors of the head as a whole
 * when the head is. So the result depends on the bytes alone, not on their division into inputs.
 */
#include "base/compiler.h"
#include "base/field_syntax.h"
#include "h1/h1_internal.h"
#include "telem/counters_http.h"

/* Fields that the engine reads. HIDDEN: of the connection (RFC 9110 7.6.1), and Upgrade, which is
 * ignored (RFC 9110 7.8). */
enum known { OTHER, HOST, LENGTH, CODING, CONNECTION, EXPECT, TE, HIDDEN };

static enum known known_of(struct nj_str name)
{
    static const struct {
        struct nj_str name;
        enum known is;
    } table[] = {
        {NJ_STR_INIT("host"), HOST},
        {NJ_STR_INIT("connection"), CONNECTION},
        {NJ_STR_INIT("te"), TE},
        {NJ_STR_INIT("expect"), EXPECT},
        {NJ_STR_INIT("upgrade"), HIDDEN},
        {NJ_STR_INIT("keep-alive"), HIDDEN},
        {NJ_STR_INIT("content-length"), LENGTH},
        {NJ_STR_INIT("proxy-connection"), HIDDEN},
        {NJ_STR_INIT("transfer-encoding"), CODING},
    };

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(table); i++)
        if (nj_str_eq(table[i].name, name))
            return table[i].is;
    return OTHER;
}

/* The next element of a list (RFC 9110 5.6.1) that is not empty. */
static bool next_element(struct nj_str *list, struct nj_str *element)
{
    while (list->n_bytes > 0) {
        const char *comma = memchr(list->p, ',', list->n_bytes);
        uint32_t n = comma ? (uint32_t)(comma - list->p) : list->n_bytes;
        *element = nj_str_trim((struct nj_str){list->p, n});
        nj_str_skip(list, comma ? n + 1 : n);
        if (element->n_bytes > 0)
            return true;
    }
    return false;
}

/* RFC 9110 7.6.1, 5.6.1. Each line of the field counts. */
static void take_connection(struct nj__h1_head *head, struct nj_str list)
{
    struct nj_str option;

    while (next_element(&list, &option)) {
        head->says_close |= nj_str_eq_nocase(option, NJ_STR("close"));
        head->says_keep_alive |= nj_str_eq_nocase(option, NJ_STR("keep-alive"));
    }
}

/* RFC 9110 10.1.1. An empty list expects nothing. */
static void take_expect(struct nj__h1_head *head, struct nj_str value)
{
    bool is_continue = nj_str_eq_nocase(value, NJ_STR("100-continue"));

    head->expects_continue |= is_continue;
    head->expects_other |= !is_continue && value.n_bytes > 0;
}

static void take_once(struct nj__h1_once *slot, struct nj_str value)
{
    if (slot->n++ == 0)
        slot->value = value;
}

/* Returns whether the field is shown to the owner. TE concerns the connection (RFC 9112 7.4, RFC
 * 9110 10.1.4): only what it says about trailers is shown. */
static bool take_known(struct nj__h1_head *head, const struct nj_field *f)
{
    enum known known = known_of(f->name);

    if (known == OTHER) {
        enum nj_header which = nj_header_id_of_name(f->name);
        if (which != NJ_N_HEADERS)
            nj_header_add(&head->req, which, f->value);
        return true;
    }
    if (known == HOST)
        take_once(&head->host, f->value);
    else if (known == LENGTH)
        take_once(&head->length, f->value);
    else if (known == CODING)
        take_once(&head->coding, f->value);
    else if (known == CONNECTION)
        take_connection(head, f->value);
    else if (known == EXPECT)
        take_expect(head, f->value);
    /* A target with a host overrides Host (RFC 9112 3.2.2). */
    return known == LENGTH || known == EXPECT || (known == HOST && head->is_origin_form) ||
           (known == TE && nj_str_eq_nocase(f->value, NJ_STR("trailers")));
}

/* Counts the field for the limits (RFC 9110 5.4). Fields stay in their order (RFC 9110 5.3). */
static void take_field(struct nj_h1_context *ctx, const struct nj_field *f)
{
    struct nj__h1_head *head = &ctx->head;

    head->n_bytes += f->name.n_bytes + f->value.n_bytes + 32;
    head->over_limit |= ++head->n_fields > ctx->limits.header_fields_max ||
                        head->n_bytes > ctx->limits.header_bytes_max;
    if (nj_unlikely(head->over_limit || head->is_trailer_section))
        return;
    head->n_scratch += f->name.n_bytes;
    if (take_known(head, f))
        ctx->fields[head->req.n_fields++] = *f;
}

/* Write the name at the begin of a line in lower case. It ends before an octet that is no tchar, at
 * the latest at the line's CR. */
static struct nj_str lower_name(char *to, const char *from)
{
    uint32_t n = 0;
    uint8_t in;

    for (; (in = nj_syntax_allowed_in[(uint8_t)from[n]]) & NJ_IN_METHOD; n++)
        to[n] = (char)(from[n] | (in & NJ_IN_NAME ? 0 : 0x20)); /* else it is in upper case */
    return (struct nj_str){to, n};
}

/* A field line (RFC 9112 5, 5.1) without its CRLF. False: it is malformed. The name is a token
 * (RFC 9110 5.1), the value has no controls but HTAB (RFC 9110 5.5). */
static bool take_field_line(struct nj_h1_context *ctx, struct nj_str line)
{
    struct nj__h1_head *head = &ctx->head;
    struct nj_field f;

    if (nj_unlikely(nj_is_ows(line.p[0]))) /* obs-fold (RFC 9112 5.2) */
        return nj__h1_refuse_head(head, 400, NJ_C_h1_field_value);
    f.name = lower_name(ctx->scratch + head->n_scratch, line.p);
    if (nj_unlikely(f.name.n_bytes == 0 || line.p[f.name.n_bytes] != ':'))
        return nj__h1_refuse_head(head, 400, NJ_C_h1_field_name);
    nj_str_skip(&line, f.name.n_bytes + 1);
    f.value = nj_str_trim(line);
    if (nj_unlikely(!nj_syntax_allows_fast(f.value, ' ', NJ_IN_VALUE)))
        return nj__h1_refuse_head(head, 400, NJ_C_h1_field_value);
    take_field(ctx, &f);
    return true;
}

static bool take_line(struct nj_h1_context *ctx, struct nj_str line, bool is_request_line)
{
    struct nj__h1_head *head = &ctx->head;
    bool ok = is_request_line ? nj__h1_parse_request_line(head, ctx->scratch, line)
                              : take_field_line(ctx, line);

    if (nj_unlikely(!ok) && memchr(line.p, '\r', line.n_bytes)) /* which is valid nowhere */
        nj__h1_refuse_head(head, 400, NJ_C_h1_line_end);
    return ok;
}

/* Lines from `at` on (RFC 9112 2.2). The first `n_seen` bytes have no LF behind `at`. */
static enum nj__h1_lines take_lines(struct nj_h1_context *ctx, const uint8_t *data, uint32_t n,
                                    uint32_t at, uint32_t n_seen)
{
    struct nj__h1_head *head = &ctx->head;
    bool is_first = at == 0 && !head->is_trailer_section, ok = true;

    for (; ok; is_first = false) {
        uint32_t from = nj_max_u32(n_seen, at);
        const uint8_t *lf = memchr(data + from, '\n', n - from);
        uint32_t end = lf ? (uint32_t)(lf - data) + 1 : n;
        head->n_used = at;
        if (nj_unlikely(end > ctx->limits.header_bytes_max)) {
            nj__h1_refuse_head(head, is_first ? 414 : 431,
                               is_first ? NJ_C_h1_target_long : NJ_C_h1_head_full);
            break;
        }
        if (!lf)
            return NJ__H1_LINES_MORE;
        if (nj_unlikely(end - at < 2 || lf[-1] != '\r')) {
            nj__h1_refuse_head(head, 400, NJ_C_h1_line_end);
            break;
        }
        head->n_used = end;
        if (end - at == 2 && !is_first)
            return NJ__H1_LINES_DONE;
        ok = take_line(ctx, (struct nj_str){(const char *)data + at, end - at - 2}, is_first);
        at = end;
    }
    return NJ__H1_LINES_BAD;
}

enum nj__h1_lines nj__h1_parse_lines(struct nj_h1_context *ctx, const uint8_t *data, uint32_t n,
                                     uint32_t line_at, uint32_t n_seen, bool is_trailer_section)
{
    struct nj__h1_head *head = &ctx->head;

    ctx->n_last_head = 0;
    memset(head, 0, offsetof(struct nj__h1_head, req.header)); /* header_set says what is valid */
    head->is_trailer_section = is_trailer_section;
    head->req.fields = ctx->fields;
    head->req.version = NJ_HTTP_1_1; /* until the request line says another */
    return take_lines(ctx, data, n, line_at, n_seen);
}

/* ---- a complete head ---- */

/* A list of transfer codings other than "chunked": 501 if there is another one, 400 if chunked is
 * not the last, or is applied twice (RFC 9112 6.1, 6.3). */
static bool refuse_codings(struct nj__h1_head *head)
{
    struct nj_str list = head->coding.value, coding;
    bool after_chunked = false, in_order = true, others = false;

    while (next_element(&list, &coding)) {
        in_order &= !after_chunked;
        after_chunked = nj_str_eq_nocase(coding, NJ_STR("chunked"));
        others |= !after_chunked;
    }
    return nj__h1_refuse_head(head, in_order && others ? 501 : 400, NJ_C_h1_coding);
}

/* RFC 9112 6.1, 6.2, 6.3, RFC 9110 8.6. Two values of a length, or a length beside a coding, may be
 * an attempt to smuggle a request (RFC 9112 11.2). */
static bool check_body(struct nj__h1_head *head)
{
    if (nj_likely(head->coding.n + head->length.n == 0))
        return true;
    if (head->coding.n > 0 && (head->length.n > 0 || head->is_1_0))
        return nj__h1_refuse_head(head, 400, NJ_C_h1_length_conflict);
    if (head->coding.n > 1)
        return nj__h1_refuse_head(head, 400, NJ_C_h1_coding);
    head->is_chunked =
        head->coding.n > 0 && nj_str_eq_nocase(head->coding.value, NJ_STR("chunked"));
    if (head->coding.n > 0)
        return head->is_chunked || refuse_codings(head);
    return (head->length.n == 1 && head->length.value.n_bytes <= 18 &&
            nj_str_parse_u64(head->length.value, &head->req.content_length)) ||
           nj__h1_refuse_head(head, 400, NJ_C_h1_length);
}

/* RFC 9112 3.2, RFC 9110 7.2. The authority of the target (RFC 9112 3.3) is Host. */
static bool check_host(struct nj__h1_head *head)
{
    if (head->host.n == 0 && head->is_1_0)
        return true;
    if (head->host.n != 1 || !nj_syntax_is_authority(head->host.value))
        return nj__h1_refuse_head(head, 400, NJ_C_h1_host);
    if (head->is_origin_form)
        head->req.authority = head->host.value;
    return true;
}

/* Decide what the body is, and whether an error is the response. */
static void check_head(struct nj__h1_head *head)
{
    struct nj_request_head *req = &head->req;

    if (nj_unlikely(head->over_limit))
        nj__h1_refuse_head(head, 431, NJ_C_h1_head_full);
    else if (check_body(head) && check_host(head) && nj_unlikely(head->expects_other))
        nj__h1_refuse_head(head, 417, NJ_C_request_expectation);
    if (nj_unlikely(head->is_connect)) { /* no content (RFC 9110 9.3.6) */
        head->is_chunked = false;
        req->content_length = 0;
    }
    req->ends = !head->is_chunked && req->content_length == 0;
    req->expects_continue = head->expects_continue && !req->ends && !head->is_1_0;
}

static enum nj__h1_lines parse_whole(struct nj_h1_context *ctx, const uint8_t *data, uint32_t n)
{
    enum nj__h1_lines rv = nj__h1_parse_lines(ctx, data, n, 0, 0, false);

    if (rv == NJ__H1_LINES_DONE)
        check_head(&ctx->head);
    return rv;
}

/* Consecutive requests are often identical, so the last head is kept with the bytes that it points
 * to. */
enum nj__h1_lines nj__h1_parse_head(struct nj_h1_context *ctx, const uint8_t *data, uint32_t n)
{
    uint32_t n_last = ctx->n_last_head, n_copied = nj_min_u32(n, NJ__H1_LAST_HEAD_MAX);

    if (n_last > 0 && n >= n_last && memcmp(ctx->last_head, data, n_last) == 0)
        return NJ__H1_LINES_DONE;
    memcpy(ctx->last_head, data, n_copied);
    enum nj__h1_lines rv = parse_whole(ctx, ctx->last_head, n_copied);
    if (rv == NJ__H1_LINES_DONE)
        ctx->n_last_head = ctx->head.n_used;
    return rv == NJ__H1_LINES_MORE && n_copied < n ? parse_whole(ctx, data, n) : rv;
}
