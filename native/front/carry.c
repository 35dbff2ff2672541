/* One large file into or out of a sandbox, for `viv cp`: the server decides and writes it down, process 1 opens the file inside with the
   rights of a user there, and this process moves the bytes between that file and the one it was started with. Started as:
   front --carry SERVER-SOCKET read|write SANDBOX PATH [user=USER] [mode=OCTAL], with the file here as descriptor 3. */
#include "carry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HERE 3

/* Anything else than the two others: nothing has changed, and the file can go through the server. */
enum { CARRIED = 0, REFUSED = 1, OTHER_WAY = 2 };

static void __attribute__((noreturn)) other_way(void) { exit(OTHER_WAY); }

static bool ask_server(int server, char **words) {
  struct output request = {0};
  put(&request, "v", "%d", PROTOCOL_VERSION);
  put(&request, "version", "%s", VIV_VERSION);
  put(&request, "uid", "%u", (unsigned)getuid());
  put(&request, "carry", "%s", words[0]);
  put(&request, "sandbox", "%s", words[1]);
  put(&request, "path", "%s", words[2]);
  for (char **more = words + 3; *more != NULL; more++) put_bytes(&request, *more, strlen(*more) + 1);
  bool asked = request.length <= FRAME_MAX && hand_over(server, &request);
  output_free(&request);
  return asked;
}

/* The end of what the server has to say: what became of it, for who started this process. */
static int tell(int server) {
  struct header header;
  char *payload;
  if (receive_frame(server, &header, &payload) != 0 || header.kind != REPLY) other_way();
  struct fields fields = {payload, header.length};
  const char *said = fields_valid(&fields) ? field(&fields, "done") : NULL, *refusal = said == NULL && fields_valid(&fields) ? field(&fields, "refused") : NULL;
  const char *text = said != NULL ? said : refusal;
  if (text == NULL) other_way();
  if (write_all(STDOUT_FILENO, text, strlen(text)) != 0) other_way();
  return said != NULL ? CARRIED : REFUSED;
}

/* What process 1 says at the end is the server's to judge. */
static int report(int server, int cell) {
  struct header header;
  char *payload;
  if (receive_frame(cell, &header, &payload) != 0) other_way();
  if (send_frame(server, header.kind == ERROR ? ERROR : REPLY, payload, header.length) != 0) other_way();
  return tell(server);
}

static int move_file(int server, int cell, bool into, int64_t most) {
  int inside;
  char *refusal;
  size_t length;
  switch (receive_file(cell, into, &inside, &refusal, &length)) {
    case FILE_REFUSED:
      if (send_frame(server, ERROR, refusal, length) != 0) other_way();
      return tell(server);
    case FILE_HANDED: break;
    default: other_way();
  }
  struct stat stat;
  if (fstat(into ? HERE : inside, &stat) != 0 || !S_ISREG(stat.st_mode)) other_way();
  /* What grows while it is read ends where it ended at first. */
  int64_t limit = into ? most : stat.st_size;
  if (stat.st_size > most || !move_bytes(into ? HERE : inside, into ? inside : HERE, limit)) other_way();
  if (into && send_frame(cell, END, NULL, 0) != 0) other_way();
  return report(server, cell);
}

int carry(char **words) {
  if (words[0] == NULL || words[1] == NULL || words[2] == NULL || words[3] == NULL) other_way();
  bool into = strcmp(words[1], "write") == 0;
  int server = connect_to(words[0]);
  if (server < 0 || !ask_server(server, words + 1)) other_way();
  struct header header;
  char *told, *request;
  if (receive_frame(server, &header, &told) != 0 || header.kind != REPLY) other_way();
  struct fields fields = {told, header.length};
  int64_t most;
  if (!fields_valid(&fields)) other_way();
  const char *place = field(&fields, "cell"), *refused = field(&fields, "refused");
  if (refused != NULL) return write_all(STDOUT_FILENO, refused, strlen(refused)) == 0 ? REFUSED : OTHER_WAY;
  if (place == NULL || !field_number(&fields, "most", &most)) other_way();
  if (receive_frame(server, &header, &request) != 0 || header.kind != REQUEST) other_way();
  int cell = connect_to(place);
  if (cell < 0 || send_frame(cell, REQUEST, request, header.length) != 0) other_way();
  return move_file(server, cell, into, most);
}
