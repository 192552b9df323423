/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive doubly linked list with a sentinel head. One thread only.
 *
 * An unlinked node points at itself, so nj_list_del() may be called again, and nj_list_linked()
 * returns false for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct nj_list {
    struct nj_list *next, *prev;
};

static inline void nj_list_init(struct nj_list *l)
{
    l->next = l->prev = l;
}

static inline bool nj_list_empty(const struct nj_list *l)
{
    return l->next == l;
}

static inline bool nj_list_linked(const struct nj_list *n)
{
    return n->next != n;
}

static inline void nj_list_push_back(struct nj_list *head, struct nj_list *n)
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}

static inline void nj_list_del(struct nj_list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    nj_list_init(n);
}

/* Remove and return the first node, or NULL if the list is empty. */
static inline struct nj_list *nj_list_pop(struct nj_list *head)
{
    struct nj_list *n = head->next;
    if (n == head)
        return NULL;
    nj_list_del(n);
    return n;
}

/* Move everything of `from` to the end of `to`; `from` is empty afterwards. */
static inline void nj_list_splice(struct nj_list *to, struct nj_list *from)
{
    if (nj_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    nj_list_init(from);
}
