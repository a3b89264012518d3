/* SPDX-License-Identifier: MIT
 *
 * Timelines on disk: the ids of a session and their cells, so that a chat taken up again need not
 * be evaluated again. A snapshot is a cache and no more: it is written to a temporary name and
 * renamed, mode 0600, and is used only if model, arithmetic, cache type, rotation and every
 * checksum are as they must be; else loading says why and the ids are evaluated as ever.
 *
 * In the thread that owns the session; the functions on folders alone are for any one thread at a
 * time a folder.
 */
#ifndef CHINWAG_SNAPSHOT_H
#define CHINWAG_SNAPSHOT_H

#include "chinwag/session.h"

/* The number of the rules of "one arithmetic" (ARCHITECTURE.md): a change of one is a new number
 * here, and what was computed under another is not used. */
enum { CW_ARITHMETIC = 2 };

/* What tells one model file from another: sizes, all metadata, names and shapes of the tensors and
 * samples of their bytes. Reads some pages of every tensor; the same for every path to the file. */
enum { CW_MODEL_KEY = 32 };
void cw_model_key(const struct cw_model *m, uint8_t key[CW_MODEL_KEY]);

/* Write the timeline to a file, by way of a temporary one beside it: the ids in whole blocks of 16,
 * so up to 15 of the last may be missing. CW_EINVAL when there are fewer; CW_EIO with the reason.
 */
int cw_session_save(struct cw_session *s, const char *path, struct cw_err *err);

/* Read back as much of the file as want[0..n) begins with (want NULL: all) and make it the
 * timeline, unless the session has as much of it already; what was current is retained. *restored
 * (may be NULL): ids read from the file. No logits: a cw_session_sync to the wanted ids follows.
 * CW_ENOENT: no such file; CW_EFORMAT: damaged, of another version, model or setting (*err says
 * which); whole pages before the damage may have been restored even then. The file is untouched. */
int cw_session_load(struct cw_session *s, const char *path, const int32_t *want, size_t n,
                    size_t *restored, struct cw_err *err);

/* ---- a folder of them -------------------------------------------------------------------------
 *
 * Files DIR/KEY.kv, KEY of 1 .. 64 digits 0-9a-f (anything else: CW_EINVAL). The folder is made
 * (0700) when first written to. */

/* Save under `key`, then remove those used longest ago until all together take at most cap_bytes
 * (0: no limit). A timeline bigger than the cap alone is not written: CW_EFULL. */
int cw_snapshots_save(const char *dir, const char *key, uint64_t cap_bytes, struct cw_session *s,
                      struct cw_err *err);
/* Load and mark as used now. */
int cw_snapshots_load(const char *dir, const char *key, struct cw_session *s, const int32_t *want,
                      size_t n, size_t *restored, struct cw_err *err);
/* One snapshot, or with key NULL all of them and what interrupted writing left. No such: CW_OK. */
int cw_snapshots_remove(const char *dir, const char *key, struct cw_err *err);
/* Bytes of all snapshots; 0 where there is no folder. */
uint64_t cw_snapshots_bytes(const char *dir);

#endif
