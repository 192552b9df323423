/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All of libnightjar: a server, and the handlers that answer its requests.
 */
#ifndef NIGHTJAR_NIGHTJAR_H
#define NIGHTJAR_NIGHTJAR_H

#include <nightjar/handler.h>
#include <nightjar/server.h>
#include <nightjar/text.h>
#include <nightjar/version.h>

#endif
