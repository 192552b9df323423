/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a command of management answers: names and values, as a tree in memory. It becomes JSON
 * (json_document.h) or an answer of DPDK's telemetry (telemetry_document.h), whose answers are
 * bounded and have no lists of dictionaries: there the members of a list stand in the dictionary
 * that has the list, as class0, class1. Each document is used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct json_t; /* of jansson */

enum nj__document_form {
    NJ__DOCUMENT_JSON,
    NJ__DOCUMENT_TELEMETRY,
    NJ__DOCUMENT_TELEMETRY_LIST, /* the answer is a list of texts, not a dictionary */
};

struct nj__document {
    struct json_t *root;
    enum nj__document_form form;
    bool is_incomplete; /* there was no memory for a part of it */
};

/* A place of a document to which values are added: a dictionary or a list. Valid until the end of
 * the document. Where there was no memory for it, what is added is dropped. */
struct nj__doc {
    struct nj__document *of;
    struct json_t *at;  /* NULL: there was no memory for it */
    const char *member; /* of a list: what telemetry calls a member */
};

/* Before the first document: jansson would open /dev/urandom for the key of its hash tables, which
 * the system-call filter of a thread may refuse. Main thread. */
void nj__documents_init(void);
/* Begin an empty document. Returns its root. Call nj__document_end() in any case. */
struct nj__doc nj__document_begin(struct nj__document *doc, enum nj__document_form form);
/* Free what it holds. */
void nj__document_end(struct nj__document *doc);

/* Is the answer one of telemetry? It holds 16 KiB, and dictionaries in one level only. */
static inline bool nj__doc_is_telemetry(struct nj__doc d)
{
    return d.of->form != NJ__DOCUMENT_JSON;
}

/* --- dictionaries --------------------------------------------------------------------------- */

/* A name must be new in its dictionary. Telemetry takes letters, digits, '_' and '/'. */

/* Values above INT64_MAX are that. */
void nj__doc_uint(struct nj__doc d, const char *name, uint64_t value);
/* Telemetry has 32 bits for a negative number. */
void nj__doc_int(struct nj__doc d, const char *name, int64_t value);
/* Any bytes: those that are no UTF-8 become the ISO 8859-1 characters of these values, as in the
 * access log. Telemetry cuts the text after 127 bytes. */
void nj__doc_text(struct nj__doc d, const char *name, const char *text);
/* Telemetry: "yes" or "no". */
void nj__doc_bool(struct nj__doc d, const char *name, bool value);
/* An empty dictionary. */
struct nj__doc nj__doc_dict(struct nj__doc d, const char *name);

/* --- lists ---------------------------------------------------------------------------------- */

/* An empty list. JSON has it under `name`; telemetry has its members under names that begin with
 * `member`, a text that outlives the document. */
struct nj__doc nj__doc_list(struct nj__doc d, const char *name, const char *member);
/* An empty dictionary in a list. JSON has the number as its `number`, telemetry in its name. */
struct nj__doc nj__doc_item(struct nj__doc list, uint32_t number);
/* The same for a member that has a name instead of a number: JSON has it as its `name`. */
struct nj__doc nj__doc_named_item(struct nj__doc list, const char *name);
/* nj__doc_item() of a list that has no other member: telemetry has the values of the member in the
 * dictionary that has the list. */
struct nj__doc nj__doc_only_item(struct nj__doc list, uint32_t number);
/* A text in a list. JSON has only the text, telemetry the number in its name. */
void nj__doc_item_text(struct nj__doc list, uint32_t number, const char *text);
