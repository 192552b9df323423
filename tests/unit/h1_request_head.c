/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads of requests: what is passed on, and what is refused with which status and counter. */
#include "base/field_syntax.h"
#include "h1_rig.h"

#define HOST "Host: h.example\r\n"
#define GET  "GET / HTTP/1.1\r\n"

/* ---- what is passed on ---- */

static void expect_request(const char *head, const char *text, int line)
{
    struct rig *r = rig_new();
    cr_expect_eq(rig_say(r, head), 0);
    cr_assert_eq(r->n_req, 1, "line %d: %s", line, r->out);
    cr_expect_str_eq(r->req[0]->text, text, "line %d: %s", line, r->req[0]->text);
    rig_free(r);
}
#define EXPECT_REQUEST(head, text) expect_request(head, text, __LINE__)

/* Sentences 201, 229, 231 - 233, 235, 238 - 240, 242, 249, 287. */
Test(h1_request_head, forms_of_the_target)
{
    EXPECT_REQUEST(GET HOST "\r\n", "GET http://h.example / ends 0|host=h.example");
    EXPECT_REQUEST("GET /a/b;c?d=e&f=%41[]{}\" HTTP/1.1\r\nHost: h\r\n\r\n",
                   "GET http://h /a/b;c?d=e&f=%41[]{}\" ends 0|host=h");
    EXPECT_REQUEST("GET /\x80\xff HTTP/1.1\r\nHost: h\r\n\r\n",
                   "GET http://h /\x80\xff ends 0|host=h");
    EXPECT_REQUEST("GET //x HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://h //x ends 0|host=h");
    EXPECT_REQUEST("GET http://a.example/b?c HTTP/1.1\r\n" HOST "\r\n",
                   "GET http://a.example /b?c ends 0");
    EXPECT_REQUEST("GET HtTp://a.example:8443/b HTTP/1.1\r\nHost:\r\n\r\n",
                   "GET http://a.example:8443 /b ends 0");
    EXPECT_REQUEST("GET http://a.example/b HTTP/1.0\r\nHost: \t\r\n\r\n",
                   "GET http://a.example /b ends 0");
    EXPECT_REQUEST("GET http://a.example HTTP/1.1\r\n" HOST "\r\n",
                   "GET http://a.example / ends 0");
    EXPECT_REQUEST("GET http://a.example?b=/c HTTP/1.1\r\n" HOST "Accept: x\r\n\r\n",
                   "GET http://a.example /?b=/c ends 0|accept=x");
    EXPECT_REQUEST("OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
                   "OPTIONS http://h.example * ends 0|host=h.example");
    EXPECT_REQUEST("OPTIONS http://a.example HTTP/1.1\r\n" HOST "\r\n",
                   "OPTIONS http://a.example * ends 0");
    EXPECT_REQUEST("OPTIONS http://a.example/ HTTP/1.1\r\n" HOST "\r\n",
                   "OPTIONS http://a.example / ends 0");
    EXPECT_REQUEST("CONNECT a.example:443 HTTP/1.1\r\n" HOST "\r\n",
                   "CONNECT ://a.example:443  ends 0");
    EXPECT_REQUEST("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n",
                   "CONNECT ://[2001:db8::1]:443  ends 0|content-length=3");
}

/* Sentences 205, 214, 222, 242. */
Test(h1_request_head, methods_and_versions)
{
    EXPECT_REQUEST("!#$%&'*+-.^_`|~aZ09 / HTTP/1.1\r\n" HOST "\r\n",
                   "!#$%&'*+-.^_`|~aZ09 http://h.example / ends 0|host=h.example");
    EXPECT_REQUEST("GET / HTTP/1.2\r\n" HOST "\r\n",
                   "GET http://h.example / ends 0|host=h.example");
    EXPECT_REQUEST("GET / HTTP/1.9\r\n" HOST "\r\n",
                   "GET http://h.example / ends 0|host=h.example");
    EXPECT_REQUEST("GET / HTTP/1.0\r\n" HOST "\r\n",
                   "GET http://h.example / ends 0|host=h.example");
    EXPECT_REQUEST("GET / HTTP/1.0\r\n\r\n", "GET http:// / ends 0");
    EXPECT_REQUEST("GET http://a/b HTTP/1.0\r\n\r\n", "GET http://a /b ends 0");
    EXPECT_REQUEST("\r\nGET / HTTP/1.0\r\n\r\n", "GET http:// / ends 0"); /* RFC 9112 2.2 */
}

/* Sentence 223. */
Test(h1_request_head, methods_have_their_case)
{
    EXPECT_REQUEST("get / HTTP/1.1\r\n" HOST "\r\n",
                   "get http://h.example / ends 0|host=h.example");
    EXPECT_REQUEST("Options http://a.example HTTP/1.1\r\n" HOST "\r\n",
                   "Options http://a.example / ends 0");
    EXPECT_REQUEST("connect http://a.example/b HTTP/1.1\r\n" HOST "\r\n",
                   "connect http://a.example /b ends 0");
}

/* Sentences 201, 253, 256, 257, 260, 264, 266, 309, 329. */
Test(h1_request_head, fields)
{
    EXPECT_REQUEST(GET HOST "X-A:b\r\nX_C:\t d  e \t\r\nEMPTY:\r\nBLANK: \t\r\nO: \x80\xff\r\n\r\n",
                   "GET http://h.example / ends 0|host=h.example|x-a=b|x_c=d  e|empty=|blank="
                   "|o=\x80\xff");
    EXPECT_REQUEST(GET HOST "!#$%&'*+-.^_`|~AZaz09: x\r\n\r\n",
                   "GET http://h.example / ends 0|host=h.example|!#$%&'*+-.^_`|~azaz09=x");
    EXPECT_REQUEST(GET HOST "Long: a value of many octets\twith a tab in it\r\n\r\n",
                   "GET http://h.example / ends 0|host=h.example"
                   "|long=a value of many octets\twith a tab in it");
    /* Fields of the connection are not shown. */
    EXPECT_REQUEST(GET HOST "Connection: close, X\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n"
                            "Upgrade: h2c\r\nTE: gzip\r\nX: y\r\n\r\n",
                   "GET http://h.example / ends 0|host=h.example|x=y");
    EXPECT_REQUEST("GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
                   "GET http:// / ends 0");
    EXPECT_REQUEST(GET HOST "A: 1\r\nB: 2\r\na: 3\r\n\r\n",
                   "GET http://h.example / ends 0|host=h.example|a=1|b=2|a=3");
    EXPECT_REQUEST(GET HOST "TE: Trailers\r\n\r\n",
                   "GET http://h.example / ends 0|host=h.example|te=Trailers");
}

/* Sentences 268, 271, 284, 317, 320, 321. */
Test(h1_request_head, bodies_and_expectations)
{
    EXPECT_REQUEST("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n",
                   "POST http://h / 17|host=h|content-length=17");
    EXPECT_REQUEST("POST / HTTP/1.1\r\nHost: h\r\ncontent-length:000000000000000017\r\n\r\n",
                   "POST http://h / 17|host=h|content-length=000000000000000017");
    EXPECT_REQUEST("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
                   "POST http://h / ends 0|host=h|content-length=0");
    EXPECT_REQUEST("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n",
                   "POST http://h / 0|host=h");
    EXPECT_REQUEST(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\nExpect: 100-Continue\r\n\r\n",
        "POST http://h / continue 7|host=h|content-length=7|expect=100-Continue");
    EXPECT_REQUEST("GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
                   "GET http://h / ends 0|host=h|expect=100-continue");
    EXPECT_REQUEST("POST / HTTP/1.0\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n",
                   "POST http:// / 7|content-length=7|expect=100-continue");
    EXPECT_REQUEST("GET / HTTP/1.1\r\nHost: h\r\nExpect:\r\n\r\n",
                   "GET http://h / ends 0|host=h|expect=");
    EXPECT_REQUEST("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n"
                   "Expect: ,100-continue,, 100-CONTINUE ,\r\n\r\n",
                   "POST http://h / continue 7|host=h|content-length=7"
                   "|expect=,100-continue,, 100-CONTINUE ,");
    EXPECT_REQUEST("GET / HTTP/1.1\r\nHost: h\r\nExpect: , ,\r\n\r\n",
                   "GET http://h / ends 0|host=h|expect=, ,");
}

/* Sentences 245, 247. */
Test(h1_request_head, hosts)
{
    static const char *const valid[] = {"a",
                                        "a.example:80",
                                        "a:",
                                        "127.0.0.1:8080",
                                        "[::1]",
                                        "[::1]:80",
                                        "%41b",
                                        "a_b!$&'()*+,;=~-.",
                                        "[2001:db8::192.0.2.1]:1"};
    static const char *const invalid[] = {
        "",    ":80",    "a:b",   "a:80:80",   "u@a",   "a/b", "a b",     "[::1",
        "::1", "[::1]x", "[]",    "[g::]",     "a]",    "%4",  "%zz",     "a?b",
        "a#b", "a\\b",   "\"a\"", "a,b:80 ,c", "a\xc3", "<a>", "[::1]:a", "http://a"};
    char head[200], text[200];

    for (size_t i = 0; i < NJ_ARRAY_LEN(valid); i++) {
        snprintf(head, sizeof head, GET "Host: %s\r\n\r\n", valid[i]);
        snprintf(text, sizeof text, "GET http://%s / ends 0|host=%s", valid[i], valid[i]);
        EXPECT_REQUEST(head, text);
        cr_expect(nj_syntax_is_authority((struct nj_str){valid[i], (uint32_t)strlen(valid[i])}));
    }
    for (size_t i = 0; i < NJ_ARRAY_LEN(invalid); i++) {
        struct rig *r = rig_new();
        snprintf(head, sizeof head, GET "Host: %s\r\n\r\n", invalid[i]);
        rig_say(r, head);
        cr_expect(r->refused_status == 400 && r->refused_why == NJ_C_h1_host, "%s", invalid[i]);
        rig_free(r);
    }
}

/* The values of fields that the server itself reads are found by number. */
static char found[100];

static void on_request_ids(void *user, struct nj_h1 *h, const struct nj_request_head *req)
{
    struct nj_str agent = nj_header_first_value(req, NJ_HEADER_USER_AGENT),
                  range = nj_header_first_value(req, NJ_HEADER_RANGE);
    snprintf(found, sizeof found, "%.*s|%.*s|%d", (int)agent.n_bytes, agent.p, (int)range.n_bytes,
             range.p, req->header_repeated);
    rig_on_request(user, h, req);
}

/* Sentence 256. */
Test(h1_request_head, fields_by_number)
{
    struct nj_h1_events events = rig_events;
    events.on_request = on_request_ids;
    struct rig *r = rig_new_with(&events, &rig_limits);
    rig_say(r, GET HOST "Range: bytes=0-\r\nUSER-AGENT: x\r\nrange: y\r\n\r\n");
    char want[100];
    snprintf(want, sizeof want, "x|bytes=0-|%d", 1 << NJ_HEADER_RANGE);
    cr_expect_str_eq(found, want);
    rig_free(r);
}

/* Sentence 241. */
Test(h1_request_head, the_scheme_is_that_of_the_connection)
{
    struct rig *r = rig_new();
    struct nj_h1 *plain = r->h, *tls = nj_h1_open(r->ctx, r, true, false);
    static const char head[] = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n";
    rig_say(r, head);
    cr_expect_str_eq(rig_last(r)->text, "GET http://h /1 ends 0|host=h");
    r->h = tls; /* its first request, which equals the last one */
    cr_expect_eq(nj_h1_context_n_conns(r->ctx), 2);
    nj_h1_prefetch(tls);
    r->n_former = r->n_req;
    rig_say(r, head);
    cr_expect_str_eq(rig_last(r)->text, "GET https://h /1 ends 0|host=h");
    nj_h1_close(plain);
    rig_free(r);
}

/* Sentences 231, 237. */
Test(h1_request_head, https_needs_tls_or_a_trusted_gateway)
{
    static const char head[] = "GET https://a.example/b HTTP/1.1\r\n" HOST "\r\n";
    struct rig *r = rig_new();
    struct nj_h1 *plain = r->h, *others[] = {nj_h1_open(r->ctx, r, true, false),
                                             nj_h1_open(r->ctx, r, false, true)};
    for (size_t i = 0; i < NJ_ARRAY_LEN(others); i++) {
        r->h = others[i];
        r->n_former = r->n_req;
        rig_say(r, head);
        cr_expect_str_eq(rig_last(r)->text, "GET https://a.example /b ends 0");
        nj_h1_close(others[i]);
    }
    cr_expect_eq(r->n_refused, 0);
    r->h = plain;
    r->n_former = r->n_req;
    rig_say(r, head); /* which equals the last one */
    cr_expect(r->refused_status == 421 && r->refused_why == NJ_C_h1_target);
    cr_expect(r->n_req == 2 && nj_h1_is_finished(r->h));
    rig_free(r);
}

/* ---- what is refused ---- */

static const struct {
    const char *head;
    uint16_t status;
    nj_counter why;
} bad[] = {
    /* line ends */
    {"GET / HTTP/1.1\n", 400, NJ_C_h1_line_end},
    {"\n", 400, NJ_C_h1_line_end},
    {GET "Host: h\n", 400, NJ_C_h1_line_end},
    {GET "Host: h\r\n\n", 400, NJ_C_h1_line_end},
    {GET "Host: h\rX: y\r\n", 400, NJ_C_h1_line_end},
    {GET "Host: h\r\r\n", 400, NJ_C_h1_line_end},
    {"GET /\r HTTP/1.1\r\n", 400, NJ_C_h1_line_end},
    {"GET / HTTP/1.1\r\r\n", 400, NJ_C_h1_line_end},
    {GET "A\rB: h\r\n", 400, NJ_C_h1_line_end},
    {GET "\r\r\n", 400, NJ_C_h1_line_end},
    /* the request line */
    {"GET  / HTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    {"GET /  HTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    {" GET / HTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    {"GET / HTTP/1.1 \r\n", 400, NJ_C_h1_request_line},
    {"GET\t/ HTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    {"GET / HTTP/1.1 x\r\n", 400, NJ_C_h1_request_line},
    {"GET /a b HTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    {"GET /\r\n", 400, NJ_C_h1_request_line}, /* HTTP/0.9 */
    {"GET / \r\n", 400, NJ_C_h1_request_line},
    {"GET\r\n", 400, NJ_C_h1_request_line},
    {"G(T / HTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    {"G\x80T / HTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    {"/ HTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    {"HTTP/1.1 200 OK\r\n", 400, NJ_C_h1_request_line},
    {"\r\n\r\n", 400, NJ_C_h1_request_line},
    {"GET / http/1.1\r\n", 400, NJ_C_h1_request_line},
    {"GET / HTTP/1.10\r\n", 400, NJ_C_h1_request_line},
    {"GET / HTTP/11\r\n", 400, NJ_C_h1_request_line},
    {"GET / HTTP/1,1\r\n", 400, NJ_C_h1_request_line},
    {"GET / HTTP/a.1\r\n", 400, NJ_C_h1_request_line},
    {"GET / HTTPS/1.1\r\n", 400, NJ_C_h1_request_line},
    {"GET / XTTP/1.1\r\n", 400, NJ_C_h1_request_line},
    /* versions */
    {"GET / HTTP/2.0\r\n", 505, NJ_C_h1_version},
    {"GET / HTTP/0.9\r\n", 505, NJ_C_h1_version},
    {"GET / HTTP/3.1\r\n", 505, NJ_C_h1_version},
    /* targets */
    {"GET a HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET /#a HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET /a#b HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET /\x01 HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET /\x7f HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET /\t HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET /a-long-target-with\x0b HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET * HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"OPTIONS ** HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"options * HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"connect a:80 HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET ftp://a/ HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET http:/a HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET http:// HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET http:///a HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET http://u@a/ HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET http://u:p@a/ HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET http://a:x/ HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET http://:80/ HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET httpx://a/ HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"GET ?a HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"CONNECT / HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"CONNECT a HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"CONNECT a: HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"CONNECT 127.0.0.1 HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"CONNECT [::1] HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"CONNECT u@a:80 HTTP/1.1\r\n", 400, NJ_C_h1_target},
    {"CONNECT http://a:80 HTTP/1.1\r\n", 400, NJ_C_h1_target},
    /* names of fields */
    {GET "Host : h\r\n", 400, NJ_C_h1_field_name},
    {GET "Host\t: h\r\n", 400, NJ_C_h1_field_name},
    {GET ": h\r\n", 400, NJ_C_h1_field_name},
    {GET "Host\r\n", 400, NJ_C_h1_field_name},
    {GET "Ho st: h\r\n", 400, NJ_C_h1_field_name},
    {GET "Ho(st: h\r\n", 400, NJ_C_h1_field_name},
    {GET "Ho\x80st: h\r\n", 400, NJ_C_h1_field_name},
    {GET "Ho\x01st: h\r\n", 400, NJ_C_h1_field_name},
    {GET "\"Host\": h\r\n", 400, NJ_C_h1_field_name},
    /* values of fields */
    {GET "A: b\x01\r\n", 400, NJ_C_h1_field_value},
    {GET "A: a long value\x0b"
         "b\r\n",
     400, NJ_C_h1_field_value},
    {GET "A: a long value of some\x7f\r\n", 400, NJ_C_h1_field_value},
    {GET "A: \x1b[0m\r\n", 400, NJ_C_h1_field_value},
    {GET " A: b\r\n", 400, NJ_C_h1_field_value},
    {GET "A: b\r\n c\r\n", 400, NJ_C_h1_field_value}, /* obs-fold */
    {GET "A: b\r\n\tc\r\n", 400, NJ_C_h1_field_value},
    {GET "A: b\r\n \r\n", 400, NJ_C_h1_field_value},
    /* Host */
    {GET "\r\n", 400, NJ_C_h1_host},
    {GET HOST HOST "\r\n", 400, NJ_C_h1_host},
    {GET "Host: a, b\r\n\r\n", 400, NJ_C_h1_host},
    {GET HOST "hOST: other\r\n\r\n", 400, NJ_C_h1_host},
    {"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400, NJ_C_h1_host},
    {"GET / HTTP/1.0\r\nHost: u@a\r\n\r\n", 400, NJ_C_h1_host},
    {"GET http://a/ HTTP/1.1\r\n\r\n", 400, NJ_C_h1_host},
    {"GET http://a/ HTTP/1.1\r\nHost: a/\r\n\r\n", 400, NJ_C_h1_host},
    {"GET http://a/ HTTP/1.1\r\nHost:\r\nHost:\r\n\r\n", 400, NJ_C_h1_host},
    {GET "Host:\r\n\r\n", 400, NJ_C_h1_host},
    {"GET / HTTP/1.0\r\nHost:\r\n\r\n", 400, NJ_C_h1_host},
    /* https without TLS */
    {"GET https://a/ HTTP/1.1\r\n" HOST "\r\n", 421, NJ_C_h1_target},
    {"GET HTTPS://a HTTP/1.0\r\n\r\n", 421, NJ_C_h1_target},
    /* Content-Length */
    {GET HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: 1, 1\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: +1\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: -1\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: 0x1\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: 1 1\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: 1.0\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length:\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: 1000000000000000000\r\n\r\n", 400, NJ_C_h1_length},
    {GET HOST "Content-Length: 18446744073709551616\r\n\r\n", 400, NJ_C_h1_length},
    /* both */
    {GET HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
     NJ_C_h1_length_conflict},
    {GET HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 400,
     NJ_C_h1_length_conflict},
    {GET HOST "Transfer-Encoding: x\r\nContent-Length: x\r\n\r\n", 400, NJ_C_h1_length_conflict},
    {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, NJ_C_h1_length_conflict},
    /* transfer codings */
    {GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: , gzip,, br , chunked\r\n\r\n", 501, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: gzip, chunked, gzip\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: chunked,\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: identity\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: xchunked\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: chunked;a=b\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: \"chunked\"\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: chunked, gzip\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: chunked, chunked\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: ,chunked\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding:\r\n\r\n", 400, NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
     NJ_C_h1_coding},
    {GET HOST "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", 400, NJ_C_h1_coding},
    /* expectations */
    {GET HOST "Expect: x\r\n\r\n", 417, NJ_C_request_expectation},
    {GET HOST "Expect: 100-continue, x\r\n\r\n", 417, NJ_C_request_expectation},
    {GET HOST "Expect: ,,x\r\n\r\n", 417, NJ_C_request_expectation},
    {GET HOST "Expect: 100-continue\r\nExpect: x\r\n\r\n", 417, NJ_C_request_expectation},
};

/* Sentences 203 - 205, 207, 208, 210 - 213, 217, 218, 222, 223, 226 - 228, 230, 234, 236, 238, 239,
 * 243 - 246, 248, 257 - 259, 261, 263, 268, 272 - 278, 283 - 285, 322, 341, 342. */
Test(h1_request_head, refused)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        const char *head = bad[i].head, *name = nj_counter_info[bad[i].why].name;
        struct rig *r = rig_new();
        cr_expect_eq(rig_say(r, head), 0);
        cr_expect_eq(r->n_req, 0, "%s", head);
        cr_expect_eq(r->n_refused, 1, "%s", head);
        cr_expect(r->refused_why == bad[i].why && rig_count(r, bad[i].why) == 1, "%s: %s", name,
                  head);
        cr_expect_eq(r->refused_status, bad[i].status, "%s", head);
        char want[100];
        snprintf(want, sizeof want, "HTTP/1.1 %u ", bad[i].status);
        cr_expect(strncmp(r->out, want, strlen(want)) == 0, "%s: %s", head, r->out);
        cr_expect(strstr(r->out, "\r\nServer: nightjar\r\nContent-Length: 0\r\n"
                                 "Connection: close\r\n\r\n"),
                  "%s", r->out);
        cr_expect(nj_h1_is_finished(r->h) && !nj_h1_must_reset(r->h));
        cr_expect_eq(rig_count(r, bad[i].status < 500 ? NJ_C_status_4xx : NJ_C_status_5xx), 1);
        cr_expect_eq(rig_count(r, NJ_C_responses), 1);
        rig_clear(r);
        cr_expect_eq(rig_say(r, GET HOST "\r\n"), 0, "input is discarded");
        RIG_EXPECT(r, "");
        rig_free(r);
    }
}

/* Sentences 227, 263. */
Test(h1_request_head, nul_is_refused_everywhere)
{
    static const char head[] = "GET /abc HTTP/1.1\r\nHost: h\r\nX-Some: a value\r\n\r\n";
    for (size_t i = 0; i < sizeof head - 1; i++) {
        char copy[sizeof head];
        memcpy(copy, head, sizeof copy);
        copy[i] = '\0';
        struct rig *r = rig_new();
        rig_input(r, copy, sizeof copy - 1);
        bool waits = i >= sizeof head - 3 || head[i] == '\n'; /* for the end of a line */
        cr_expect(r->n_req == 0 && (waits || r->refused_status == 400), "at %zu", i);
        nj_h1_end_for_timeout(r->h);
        cr_expect(r->refused_status == 400 || r->refused_status == 408, "at %zu", i);
        rig_free(r);
    }
}

/* Without on_refused the engine responds. Sentences 208, 243, 310. */
Test(h1_request_head, refused_by_the_engine)
{
    struct rig *r = rig_new_with(&rig_plain_events, &rig_limits);
    rig_say(r, "GET / HTTP/1.1\r\n\r\n");
    RIG_EXPECT(r, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    cr_expect_eq(rig_count(r, NJ_C_h1_host), 1);
    rig_free(r);
    r = rig_new_with(&rig_plain_events, &rig_limits); /* no body for HEAD */
    rig_say(r, "HEAD / HTTP/1.1\r\nX: \x01\r\n");
    RIG_EXPECT(r, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    rig_free(r);
}

/* ---- limits ---- */

static void expect_limit(const char *head, size_t n, uint16_t status, nj_counter why, bool pieces)
{
    const struct nj_h1_limits limits = {.header_bytes_max = 300, .header_fields_max = 4};
    struct rig *r = rig_new_with(&rig_events, &limits);
    for (size_t i = 0; pieces && i < n; i++)
        rig_input(r, head + i, 1);
    if (!pieces)
        rig_input(r, head, n);
    cr_expect_eq(r->n_req, status == 200, "%.*s", (int)n, head);
    cr_expect_eq(r->refused_status, status == 200 ? 0 : status, "%u: %.*s", r->refused_status,
                 (int)n, head);
    if (status != 200)
        cr_expect_eq(rig_count(r, why), 1);
    cr_expect_leq(nj_h1_buffered_bytes(r->h), 2 * 300 + 1024);
    rig_free(r);
}

static void expect_limits(const char *head, size_t n, uint16_t status, nj_counter why)
{
    expect_limit(head, n, status, why, false);
    expect_limit(head, n, status, why, true);
}

/* Sentences 219, 265. */
Test(h1_request_head, limits)
{
    char head[1000], path[400];

    memset(path, 'a', sizeof path);
    /* the request line, with its CRLF */
    int n = snprintf(head, sizeof head, "GET /%.*s HTTP/1.1\r\n", 300 - 15, path);
    expect_limits(head, (size_t)n, 414, NJ_C_h1_target_long);
    n = snprintf(head, sizeof head, "GET /%.*s HTTP/1.1\r\n", 300 - 16, path);
    cr_expect_eq(n, 300);
    n += snprintf(head + n, sizeof head - (size_t)n, HOST "\r\n");
    expect_limits(head, (size_t)n, 431, NJ_C_h1_head_full);
    expect_limits(head, 301, 431, NJ_C_h1_head_full);
    memset(head, 'a', 301); /* without a line end */
    expect_limits(head, 301, 414, NJ_C_h1_target_long);
    /* fields */
    n = snprintf(head, sizeof head, GET "Host: h\r\nA: %.*s\r\n\r\n", 300 - 32 - 1 - 32 - 5, path);
    expect_limits(head, (size_t)n, 200, 0);
    n = snprintf(head, sizeof head, GET "Host: h\r\nA: %.*s\r\n\r\n", 301 - 32 - 1 - 32 - 5, path);
    expect_limits(head, (size_t)n, 431, NJ_C_h1_head_full);
    n = snprintf(head, sizeof head, GET "Host: h\r\nA: %.*s", 400 - 40, path);
    expect_limits(head, (size_t)n, 431, NJ_C_h1_head_full);
    n = snprintf(head, sizeof head, GET "Host: h\r\nA: b\r\nA: b\r\nA: b\r\n\r\n");
    expect_limits(head, (size_t)n, 200, 0);
    n = snprintf(head, sizeof head, GET "Host: h\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n");
    expect_limits(head, (size_t)n, 431, NJ_C_h1_head_full);
    /* OWS counts as bytes of the head */
    memset(path, ' ', sizeof path);
    n = snprintf(head, sizeof head, GET "Host: h\r\nA:%.*s\r\n\r\n", 300, path);
    expect_limits(head, (size_t)n, 431, NJ_C_h1_head_full);
}

/* A head that exceeds what the context remembers is parsed where it is. */
Test(h1_request_head, long_heads)
{
    struct rig *r = rig_new();
    char head[6000];
    int n = snprintf(head, sizeof head, "GET /1 HTTP/1.1\r\nHost: h\r\n");
    for (unsigned i = 0; i < 5; i++)
        n += snprintf(head + n, sizeof head - (size_t)n, "X-%u: %0*d\r\n", i, 900, 7);
    n += snprintf(head + n, sizeof head - (size_t)n, "\r\n");
    for (unsigned i = 0; i < 3; i++) {
        cr_expect_eq(rig_input(r, head, (size_t)n), 0);
        cr_expect_eq(r->n_closed, i + 1);
    }
    rig_free(r);
}

/* Equal and almost equal heads in turn. */
Test(h1_request_head, repeated_heads)
{
    struct rig *r = rig_new();
    for (unsigned i = 0; i < 60; i++) {
        char head[100], want[100];
        unsigned k = i / 3 % 4;
        snprintf(head, sizeof head, "GET /1 HTTP/1.1\r\nHost: h%u\r\n%s\r\n", k,
                 i % 7 == 6 ? "Expect:\r\n" : "");
        snprintf(want, sizeof want, "GET http://h%u /1 ends 0|host=h%u%s", k, k,
                 i % 7 == 6 ? "|expect=" : "");
        rig_say(r, head);
        cr_expect_str_eq(rig_last(r)->text, want);
    }
    cr_expect_eq(r->n_closed, 60);
    rig_free(r);
}
