/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The version of these headers, for programs that are compiled with several versions of nightjar:
 *
 *     #if NJ_VERSION >= NJ_VERSION_NUMBER(0, 2, 0)
 *
 * nj_version() is that of the library which the program runs with, and tells commits apart.
 */
#ifndef NIGHTJAR_VERSION_H
#define NIGHTJAR_VERSION_H

#define NJ_VERSION_MAJOR 0 /**< 0.1.2: 0 */
#define NJ_VERSION_MINOR 1 /**< 0.1.2: 1 */
#define NJ_VERSION_PATCH 0 /**< 0.1.2: 2 */

/** A version as one number: a later version has a larger one. Each part is below 1000. */
#define NJ_VERSION_NUMBER(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))

/** The version of these headers as one number. */
#define NJ_VERSION NJ_VERSION_NUMBER(NJ_VERSION_MAJOR, NJ_VERSION_MINOR, NJ_VERSION_PATCH)

#endif
