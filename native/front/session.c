/* Frames from the server. */
#include "front.h"

#include <stdlib.h>
#include <string.h>

static bool keep_lost(struct session *session, const struct fields *fields) {
  const char *out = field(fields, "lost_stdout"), *error = field(fields, "lost_stderr");
  int64_t code;
  if (out == NULL || error == NULL || !field_number(fields, "lost_code", &code)) return false;
  session->lost[1] = strdup(out);
  session->lost[2] = strdup(error);
  session->lost_code = (int)(code & 0xff);
  return true;
}

static void free_again(struct session *session) {
  for (char **word = session->again; word != NULL && *word != NULL; word++) free(*word);
  free(session->again);
  session->again = NULL;
}

/* How Node goes on if the server goes away from now on. */
static bool keep_again(struct session *session, const struct fields *fields) {
  size_t count = field_count(fields, "again_arg");
  free_again(session);
  if (count == 0) return true;
  session->again = calloc(count + 1, sizeof *session->again);
  const char *word = NULL;
  for (size_t at = 0; session->again != NULL && at < count; at++) {
    word = field_next(fields, "again_arg", word);
    session->again[at] = word == NULL ? NULL : strdup(word);
    if (session->again[at] == NULL) return false;
  }
  return session->again != NULL;
}

static bool is_set(const struct fields *fields, const char *key, bool *on) {
  const char *value = field(fields, key);
  if (value != NULL) *on = strcmp(value, "1") == 0;
  return value != NULL;
}

static bool is_handed(const struct fields *fields) { return field(fields, "take") != NULL; }

static bool take_hand(struct session *session, const struct fields *fields) {
  const char *exec = field(fields, "exec"), *token = field(fields, "token");
  if (exec == NULL || token == NULL || session->reader.fd >= 0) return false;
  begin_output(session, field(fields, "take"), exec, token);
  return true;
}

static bool take_reply(struct session *session, const struct fields *fields) {
  bool on;
  if (!session->accepted) {
    session->for_node = field_flag(fields, "node");
    session->accepted = !session->for_node && field_flag(fields, "ok") && keep_lost(session, fields);
    return session->for_node || session->accepted;
  }
  if (is_set(fields, "raw", &on)) set_raw(on);
  if (is_set(fields, "signals", &on)) set_signals(session, on);
  if (is_set(fields, "stdin", &on)) set_input(session, on);
  if (field(fields, "again") != NULL && !keep_again(session, fields)) return false;
  return !is_handed(fields) || take_hand(session, fields);
}

static bool take_exit(struct session *session, const struct fields *fields) {
  int64_t code;
  if (!session->accepted || !field_number(fields, "code", &code)) return false;
  session->exit_code = (int)(code & 0xff);
  return true;
}

static bool take_event(struct session *session, const struct fields *fields) {
  const char *event = field(fields, "event");
  int64_t bytes;
  if (!session->accepted || event == NULL || strcmp(event, "taken") != 0) return false;
  if (!field_number(fields, "bytes", &bytes) || bytes < 0 || bytes > FRAME_MAX) return false;
  more_input((size_t)bytes);
  return true;
}

static bool take_fields(struct session *session, uint8_t kind, const char *data, size_t length) {
  struct fields fields = {.data = data, .length = length};
  if (!fields_valid(&fields)) return false;
  switch (kind) {
    case REPLY: return take_reply(session, &fields);
    case EXIT: return take_exit(session, &fields);
    case EVENT: return take_event(session, &fields);
    default: return false;
  }
}

static bool is_accepted(const struct session *session) { return session->accepted; }
static bool is_over(const struct session *session) { return session->for_node || session->exit_code >= 0; }

size_t take_frames(struct session *session, const char *data, size_t length) {
  static const struct stream stream = {.is_accepted = is_accepted, .is_over = is_over, .take = take_fields, .longest = CHUNK_MAX};
  return take_stream(session, &session->part, &stream, data, length);
}

void session_free(struct session *session) {
  free_again(session);
  for (int fd = 1; fd <= 2; fd++) {
    free(session->lost[fd]);
    session->lost[fd] = NULL;
  }
}
