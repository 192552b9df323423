/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of clients, requests and responses, which ends the process if it is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "testing/testing_internal.h"

void *nj__test_resize(void *p, size_t n_bytes)
{
    void *to = realloc(p, n_bytes ? n_bytes : 1);

    NJ_CHECK(to); /* there is enough memory for the test */
    return to;
}

void *nj__test_alloc(size_t n_bytes)
{
    return memset(nj__test_resize(NULL, n_bytes), 0, n_bytes);
}

char *nj__test_text(const char *p, size_t n_bytes)
{
    char *to = nj__test_alloc(n_bytes + 1);

    if (n_bytes > 0)
        memcpy(to, p, n_bytes);
    return to;
}

/* A NUL follows. */
void nj__test_append(struct nj__test_bytes *to, const void *p, size_t n_bytes)
{
    if (to->n_max - to->n <= n_bytes) {
        to->n_max = 2 * to->n_max + n_bytes + 64;
        to->p = nj__test_resize(to->p, to->n_max);
    }
    if (n_bytes > 0)
        memcpy(to->p + to->n, p, n_bytes);
    to->n += n_bytes;
    to->p[to->n] = 0;
}

void nj__test_consume(struct nj__test_bytes *from, size_t n_bytes)
{
    from->n -= n_bytes;
    if (from->n > 0)
        memmove(from->p, from->p + n_bytes, from->n);
}
