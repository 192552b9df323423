/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of nightjar-examples, one per file. The routes are in main.c. */
#pragma once

#include <nightjar/handler.h>

void hello(struct nj_request *req, struct nj_response *resp, void *arg);
void echo(struct nj_request *req, struct nj_response *resp, void *arg);
void slow(struct nj_request *req, struct nj_response *resp, void *arg);
void events(struct nj_request *req, struct nj_response *resp, void *arg);
void metrics(struct nj_request *req, struct nj_response *resp, void *arg);
void lookup(struct nj_request *req, struct nj_response *resp, void *arg);

/* The decimal number after "KEY=" in the query, or `otherwise`; at most `most`. */
unsigned long query_number(const struct nj_request *req, const char *key, unsigned long otherwise,
                           unsigned long most);
