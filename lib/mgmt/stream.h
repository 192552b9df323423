/* SPDX-License-Identifier: BSD-3-Clause */
/* A body that is made while it is sent, for as long as its client takes it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* A route of the management listener fills it in (routes.h), with all that it needs at `of`, and
 * returns 200 with its `type`. All functions are called on the management thread. A client that
 * takes no byte for 60 s is cut off; a stream that has nothing to send waits for as long as its
 * client stays. */
struct nj__mgmt_stream {
    /* > 0: the number of bytes written to `to`, at most `n`. 0: nothing now; it is asked again
     * within 50 ms. < 0: the end of the body. NULL: the route gives no stream. */
    ssize_t (*read)(void *of, char *to, size_t n);
    /* Would read() give something now? A stream that waits is resumed only then. NULL: it is always
     * asked by read(). */
    bool (*has_more)(void *of);
    /* The last call: called once in any case, also when the client has gone, or asked for the head
     * only: then read() is never called. */
    void (*end)(void *of);
    void *of;
};
