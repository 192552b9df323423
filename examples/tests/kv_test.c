/* SPDX-License-Identifier: BSD-3-Clause */
/* The routes of kv.c without a server. */
#define main example_main
#include "kv.c"
#undef main
#undef NDEBUG
#include <assert.h>
#include <nightjar/test.h>

static char large[MAX + 1];

static unsigned call(struct nj_test *t, const char *method, const char *key, const char *value)
{
    char path[64];

    snprintf(path, sizeof path, "/kv/%s", key);
    return nj_test_call(t, method, path, value, value ? strlen(value) : 0)->status;
}

int main(void)
{
    struct nj_test *t = nj_test_new(routes, sizeof routes / sizeof routes[0], NULL);
    const struct nj_test_response *first, *second, *third;

    assert(call(t, "GET", "a", NULL) == 404);
    assert(call(t, "PUT", "a", "one") == 201);
    first = nj_test_call(t, "GET", "/kv/a", NULL, 0);
    assert(first->status == 200 && strcmp(first->body, "one") == 0);
    assert(call(t, "PUT", "a", "two") == 204);
    second = nj_test_call(t, "GET", "/kv/a", NULL, 0);
    assert(strcmp(second->body, "two") == 0);
    assert(strcmp(nj_test_response_header(first, "etag"),
                  nj_test_response_header(second, "etag")) != 0);
    assert(call(t, "PUT", "empty", NULL) == 201 && call(t, "GET", "empty", NULL) == 200);

    struct nj_test_request *r = nj_test_request(t, NULL, "GET", "/kv/a");
    nj_test_request_header(r, "if-none-match", nj_test_response_header(second, "etag"));
    nj_test_request_end(r);
    assert(nj_test_wait(r, 1000000000) && nj_test_response(r)->status == 304);

    /* a body in pieces is stored when it is complete, and not if the client leaves */
    for (int leaves = 0; leaves < 2; leaves++) {
        r = nj_test_request(t, NULL, "PUT", leaves ? "/kv/lost" : "/kv/pieces");
        nj_test_request_body(r, "ab", 2);
        nj_test_request_body(r, "cd", 2);
        if (leaves)
            nj_test_request_reset(r);
        else
            nj_test_request_end(r);
        nj_test_advance(t, 1000000);
    }
    third = nj_test_call(t, "GET", "/kv/pieces", NULL, 0);
    assert(strcmp(third->body, "abcd") == 0 && call(t, "GET", "lost", NULL) == 404);

    assert(nj_test_call(t, "PUT", "/kv/large", large, MAX)->status == 201);
    assert(nj_test_call(t, "GET", "/kv/large", NULL, 0)->n_bytes == MAX);
    assert(nj_test_call(t, "PUT", "/kv/large", large, MAX + 1)->status == 413);

    assert(call(t, "DELETE", "a", NULL) == 204 && call(t, "DELETE", "a", NULL) == 404);

    /* memory is bounded: when it is used up, a deleted value makes room */
    char key[16];
    unsigned status = 201, n = 0;
    for (; status == 201; n++) {
        snprintf(key, sizeof key, "n%u", n);
        status = call(t, "PUT", key, "x");
    }
    assert(status == 507 && n <= N_MAX);
    assert(call(t, "DELETE", "n0", NULL) == 204 && call(t, "PUT", "n0", "x") == 201);
    assert(nj_test_free(t) == 0);
    puts("kv: ok");
}
