/* Owners and groups that are not in a sandbox's usual range of ids: those that the files of a project have are given to it. */
#include "sync.h"

#include <stdio.h>

#define USUAL 65536

static void note(struct sync *sync, struct large_ids *ids, uint32_t id) {
  if (id < USUAL) return;
  for (size_t index = 0; index < ids->count; index++)
    if (ids->list[index] == id) return;
  if (ids->count == LIST_MOST) sync->cut = true;
  else ids->list[ids->count++] = id;
}

void note_owner(struct sync *sync, const struct stat *status) {
  if (status->st_uid < USUAL && status->st_gid < USUAL) return;
  note(sync, &sync->owners, status->st_uid);
  note(sync, &sync->groups, status->st_gid);
}

void put_owners(struct sync *sync) {
  for (size_t index = 0; index < sync->owners.count; index++) put(&sync->answer->fields, "owner", "%u", sync->owners.list[index]);
  for (size_t index = 0; index < sync->groups.count; index++) put(&sync->answer->fields, "group", "%u", sync->groups.list[index]);
}
