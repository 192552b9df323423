/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that wait, for tests/package/test_gdb.py: a shard without a port, and clients that leave
 * each handler where it waits. */
#include <nightjar/handler.h>

#include "support/handlers_rig.h"

static uint8_t zeros[100000];

static void sleeps(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(5 * NJ_SEC);
}

static void reads(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char byte;

    while (nj_request_read(req, &byte, 1) > 0)
        ;
}

static void wait_in_a_function(struct nj_event *event, int depth)
{
    if (depth > 0)
        wait_in_a_function(event, depth - 1);
    else
        nj_await(event, 0);
}

static void awaits(struct nj_request *req, struct nj_response *resp, void *arg)
{
    wait_in_a_function(arg, 3);
}

static void writes(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, zeros, sizeof zeros);
}

static void ends(struct nj_request *req, struct nj_response *resp, void *arg)
{
}

static struct nj_event event;
static const struct nj_route routes[] = {
    {.method = "GET", .path = "/sleep", .type = NJ_BLOCKING, .handle = sleeps},
    {.method = "POST", .path = "/read/*", .type = NJ_EITHER, .handle = reads},
    {.method = "GET", .path = "/await", .type = NJ_UNTYPED, .handle = awaits, .arg = &event},
    {.method = "GET", .path = "/write", .type = NJ_BLOCKING, .handle = writes},
    {.method = "GET", .path = "/end", .type = NJ_BLOCKING, .handle = ends},
};

/* gdb stops here. */
__attribute__((noinline)) static void they_wait(struct hr *h)
{
    __asm__ volatile("" : : "r"(h) : "memory");
}

int main(void)
{
    static const struct hr_options narrow = {.window = 1000, .no_auto = true};
    struct hr *h = hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));

    struct hr_client *c = hr_connect_with(h, &narrow);
    hr_get(c, "/end");
    hr_get(c, "/sleep");
    hr_ask(c, "POST", "/read/file", 10, 5, NULL, NULL);
    hr_get(c, "/await");
    hr_get(c, "/write");
    hr_settle(h);
    they_wait(h);
    hr_free(h);
    return 0;
}
