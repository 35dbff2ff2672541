/* Reads a `launch` request and what it says of the disk into a struct launch. */
#include "steps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int refuse(struct launch *launch, const char *what, const char *message) {
  errno = EINVAL;
  launch->message = message;
  return failed(launch, "request %s", what);
}

static bool id_number(const struct fields *request, const char *key, uid_t *value) {
  int64_t number;
  if (!field_number(request, key, &number) || number < 0 || number >= UINT32_MAX) return false;
  *value = (uid_t)number;
  return true;
}

static int parse_identity(struct launch *launch, const struct fields *request) {
  const char *mode = field(request, "mode");
  if (mode == NULL) return refuse(launch, "mode", "mode is missing");
  launch->root_mode = strcmp(mode, "root") == 0;
  if (!launch->root_mode && strcmp(mode, "user") != 0) return refuse(launch, "mode", "mode is neither root nor user");
  if (launch->root_mode) {
    if (!id_number(request, "uid_base", &launch->uid_base) || !id_number(request, "uid_count", &launch->uid_count))
      return refuse(launch, "uid_base", "root mode needs uid_base and uid_count");
    /* A range that holds real users would make the sandbox's root one of them. */
    if (launch->uid_base < 65536 || launch->uid_count == 0 || launch->uid_count > UINT32_MAX - launch->uid_base)
      return refuse(launch, "uid_base", "the id range is not usable");
    return 0;
  }
  if (!id_number(request, "map_uid", &launch->map_uid) || !id_number(request, "map_gid", &launch->map_gid))
    return refuse(launch, "map_uid", "user mode needs map_uid and map_gid");
  return 0;
}

/* What is mapped outside must belong to no user, as the whole range does. That no id is mapped twice is for the kernel to see. */
static int parse_pair(struct launch *launch, struct id_pairs *pairs, char *value) {
  char *parts[2], *end[2];
  if (!launch->root_mode || pairs->count == IDS_MOST || split_parts(value, parts, 2) != 2) return refuse(launch, "more ids", "too many ids, or not a pair");
  unsigned long long inside = strtoull(parts[0], &end[0], 10), outside = strtoull(parts[1], &end[1], 10);
  bool numbers = end[0] != parts[0] && *end[0] == '\0' && end[1] != parts[1] && *end[1] == '\0';
  if (!numbers || inside < launch->uid_count || inside >= UINT32_MAX || outside < 65536 || outside >= UINT32_MAX)
    return refuse(launch, "more ids", "an id is not usable");
  pairs->list[pairs->count].inside = (uint32_t)inside;
  pairs->list[pairs->count++].outside = (uint32_t)outside;
  return 0;
}

static int parse_more_uid(struct launch *launch, char *value) { return parse_pair(launch, &launch->more_uids, value); }
static int parse_more_gid(struct launch *launch, char *value) { return parse_pair(launch, &launch->more_gids, value); }

static int parse_list(struct launch *launch, const struct fields *request, const char *key, const char **list, size_t *count) {
  for (const char *value = field(request, key); value != NULL; value = field_next(request, key, value)) {
    if (*count == CGROUPS_MOST) return refuse(launch, key, "too many cgroups");
    list[(*count)++] = value;
  }
  return 0;
}

static bool limit_value(const char *text, uint64_t *value) {
  char *end;
  *value = strcmp(text, "unlimited") == 0 ? (uint64_t)RLIM_INFINITY : strtoull(text, &end, 10);
  return *value == (uint64_t)RLIM_INFINITY || (end != text && *end == '\0');
}

static int parse_rlimit(struct launch *launch, char *value) {
  static const struct { const char *name; int resource; } known[] = {
    {"nproc", RLIMIT_NPROC}, {"nofile", RLIMIT_NOFILE}, {"as", RLIMIT_AS},
    {"fsize", RLIMIT_FSIZE}, {"core", RLIMIT_CORE}, {"memlock", RLIMIT_MEMLOCK},
  };
  char *parts[3];
  struct init_plan *plan = &launch->plan;
  if (split_parts(value, parts, 3) != 3 || plan->rlimit_count == sizeof plan->rlimits / sizeof *plan->rlimits)
    return refuse(launch, "rlimit", "a limit is name, soft, hard");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(parts[0], known[i].name) != 0) continue;
    uint64_t soft, hard;
    if (!limit_value(parts[1], &soft) || !limit_value(parts[2], &hard)) return refuse(launch, "rlimit", "a limit is not a number");
    plan->rlimits[plan->rlimit_count].resource = known[i].resource;
    plan->rlimits[plan->rlimit_count].soft = soft;
    plan->rlimits[plan->rlimit_count++].hard = hard;
    return 0;
  }
  return refuse(launch, "rlimit", "unknown limit");
}

static int parse_group_value(struct launch *launch, char *value) {
  char *parts[3];
  if (launch->group_value_count == CGROUPS_MOST || split_parts(value, parts, 3) != 3)
    return refuse(launch, "group_value", "too many values, or not file, value and whether it may be missing");
  size_t at = launch->group_value_count++;
  launch->group_values[at].file = parts[0];
  launch->group_values[at].value = parts[1];
  launch->group_values[at].optional = strcmp(parts[2], "1") == 0;
  return 0;
}

static int parse_forward(struct launch *launch, char *value) {
  struct init_plan *plan = &launch->plan;
  char *parts[2], *end;
  if (split_parts(value, parts, 2) != 2 || plan->forward_count == sizeof plan->forwards / sizeof *plan->forwards)
    return refuse(launch, "forward", "a forward is port, name");
  unsigned long port = strtoul(parts[0], &end, 10);
  size_t length = strlen(parts[1]);
  if (end == parts[0] || *end != '\0' || port == 0 || port > 65535) return refuse(launch, "forward", "not a port");
  if (length == 0 || length >= sizeof plan->forwards[0].name || strchr(parts[1], '/') != NULL)
    return refuse(launch, "forward", "not the name of a socket");
  plan->forwards[plan->forward_count].port = (uint16_t)port;
  memcpy(plan->forwards[plan->forward_count++].name, parts[1], length + 1);
  return 0;
}

static int parse_direct(struct launch *launch, const struct fields *request) {
  const char *name = field(request, "direct");
  if (name == NULL) return 0;
  size_t length = strlen(name);
  if (length == 0 || length >= sizeof launch->plan.direct || strchr(name, '/') != NULL) return refuse(launch, "direct", "not the name of a socket");
  memcpy(launch->plan.direct, name, length + 1);
  return 0;
}

static int parse_view(struct launch *launch, char *value) {
  char *parts[2];
  if (launch->view_count == CGROUPS_MOST) return refuse(launch, "cgroup_view", "too many cgroups");
  if (split_parts(value, parts, 2) != 2 || strchr(parts[0], '/') != NULL || parts[0][0] == '.' || parts[1][0] != '/')
    return refuse(launch, "cgroup_view", "a view is name, absolute path");
  launch->views[launch->view_count].name = parts[0];
  launch->views[launch->view_count++].path = parts[1];
  return 0;
}

static int parse_limits(struct launch *launch, const struct fields *request) {
  int64_t memory = 0, cpus = 0, range = 0;
  bool valid = (field(request, "memory") == NULL || field_number(request, "memory", &memory)) && (field(request, "cpus") == NULL || field_number(request, "cpus", &cpus)) &&
               (field(request, "range") == NULL || field_number(request, "range", &range));
  if (!valid || memory < 0 || cpus < 0 || cpus > UINT16_MAX || range < 0 || range > UINT32_MAX) return refuse(launch, "limits", "memory, cpus or range is not a number");
  launch->limits = (struct shown_limits){.memory = (uint64_t)memory, .cpus = (uint32_t)cpus, .meminfo = -1, .online = -1, .files = -1, .machine = -1, .usage = -1, .statistics = -1};
  launch->range = (uint32_t)range;
  launch->plan.limits = &launch->limits;
  return 0;
}

static int parse_tree(struct launch *launch, char *value) {
  char *parts[2];
  if (launch->tree_count == TREES_MOST) return refuse(launch, "tree", "too many trees");
  if (split_parts(value, parts, 2) != 2 || parts[1][0] != '/') return refuse(launch, "tree", "a tree is name, absolute path");
  launch->trees[launch->tree_count++] = (struct tree){.name = parts[0], .path = parts[1], .fd = -1};
  return 0;
}

/* A wish that is not understood must not be taken for granted. */
static bool known_flags(const char *flags) {
  while (*flags != '\0') {
    size_t length = strcspn(flags, ",");
    if (!(length == 2 && (memcmp(flags, "ro", 2) == 0 || memcmp(flags, "rw", 2) == 0)) && !(length == 4 && memcmp(flags, "file", 4) == 0)) return false;
    flags += length + (flags[length] == ',');
  }
  return true;
}

static int parse_mount(struct launch *launch, char *value) {
  static const struct { const char *kind; size_t least, most; } kinds[] = {
    {"overlay", 5, LAYERS_MOST + 4}, {"bind", 4, 4}, {"tmpfs", 4, 4}, {"symlink", 3, 3}, {"dir", 3, 3},
  };
  if (launch->mount_count == MOUNTS_MOST) return refuse(launch, "mount", "too many mounts");
  struct mount_entry *entry = &launch->mounts[launch->mount_count++];
  entry->source = -1;
  entry->count = split_parts(value, entry->parts, sizeof entry->parts / sizeof *entry->parts);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(entry->parts[0], kinds[i].kind) != 0) continue;
    if (entry->count < kinds[i].least || entry->count > kinds[i].most) return refuse(launch, "mount", "wrong number of parts");
    bool unseen = strcmp(kinds[i].kind, "overlay") == 0 && entry->parts[1][0] == '@' && launch->root_mode;
    if (entry->parts[1][0] != '/' && !unseen) return refuse(launch, "mount", "a target is an absolute path");
    if (strcmp(kinds[i].kind, "bind") == 0 && !known_flags(entry->parts[3])) return refuse(launch, "mount", "unknown flag of a bind");
    return 0;
  }
  return refuse(launch, "mount", "unknown kind of mount");
}

static int parse_read_only(struct launch *launch, char *value) {
  if (launch->read_only_count == MOUNTS_MOST) return refuse(launch, "read_only", "too many mounts");
  if (value[0] != '/') return refuse(launch, "read_only", "a target is an absolute path");
  launch->read_only[launch->read_only_count++] = value;
  return 0;
}

/* Splitting writes into a value, so it happens in a copy of the payload while the search for keys goes over the original. */
static int parse_each(struct launch *launch, const struct fields *request, char *copy, const char *key, int (*parse)(struct launch *, char *)) {
  for (const char *value = field(request, key); value != NULL; value = field_next(request, key, value))
    if (parse(launch, copy + (value - request->data)) != 0) return -1;
  return 0;
}

static int parse_root(struct launch *launch, const struct fields *request) {
  const char *root = field(request, "root");
  launch->tmpfs_root = root != NULL && strcmp(root, "tmpfs") == 0;
  if (launch->tmpfs_root) return 0;
  if (root != NULL && strcmp(root, "overlay") != 0) return refuse(launch, "root", "root is neither overlay nor tmpfs");
  const struct mount_entry *first = &launch->mounts[0];
  if (launch->mount_count == 0 || strcmp(first->parts[0], "overlay") != 0 || strcmp(first->parts[1], "/") != 0)
    return refuse(launch, "root", "the first mount is not an overlay for /");
  return 0;
}

int parse_disk(struct launch *launch, const struct fields *disk, char *copy) {
  launch->hostname = field(disk, "hostname");
  memcpy(copy, disk->data, disk->length);
  if (parse_each(launch, disk, copy, "tree", parse_tree) != 0) return -1;
  if (parse_each(launch, disk, copy, "mount", parse_mount) != 0) return -1;
  if (parse_each(launch, disk, copy, "read_only", parse_read_only) != 0) return -1;
  return parse_root(launch, disk);
}

int parse_launch(struct launch *launch, const struct fields *request, char *copy) {
  if (parse_identity(launch, request) != 0) return -1;
  launch->socket = field(request, "socket");
  launch->logs = field(request, "logs");
  launch->run = field(request, "run");
  launch->memory_cgroup = field(request, "memory_cgroup");
  if (launch->socket == NULL || launch->socket[0] != '/') return refuse(launch, "socket", "socket is not an absolute path");
  const char *privileges = field(request, "privileges");
  launch->keep_privileges = privileges != NULL && strcmp(privileges, "keep") == 0;
  launch->plan.keep_privileges = launch->keep_privileges;
  launch->plan.single_user = !launch->root_mode;
  if (parse_list(launch, request, "init_cgroup", launch->init_cgroups, &launch->init_cgroup_count) != 0) return -1;
  if (parse_list(launch, request, "work_cgroup", launch->work_cgroups, &launch->work_cgroup_count) != 0) return -1;
  memcpy(copy, request->data, request->length);
  if (parse_list(launch, request, "new_cgroup", launch->new_cgroups, &launch->new_cgroup_count) != 0) return -1;
  if (parse_each(launch, request, copy, "group_value", parse_group_value) != 0) return -1;
  if (parse_each(launch, request, copy, "rlimit", parse_rlimit) != 0) return -1;
  if (parse_each(launch, request, copy, "forward", parse_forward) != 0) return -1;
  if (parse_direct(launch, request) != 0 || parse_limits(launch, request) != 0) return -1;
  if (parse_each(launch, request, copy, "cgroup_view", parse_view) != 0) return -1;
  if (parse_each(launch, request, copy, "more_uid", parse_more_uid) != 0) return -1;
  return parse_each(launch, request, copy, "more_gid", parse_more_gid);
}
