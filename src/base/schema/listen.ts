/** Where the server listens besides its socket, in the user's config. */
import { z } from "zod";

export const ListenConfig = z
  .strictObject({
    address: z.string().min(1).max(300).describe("PORT, or ADDRESS:PORT; any but this machine's own loopback needs one of the others."),
    cert: z.string().startsWith("/").optional().describe("File with the certificate (PEM), and those that vouch for it."),
    key: z.string().startsWith("/").optional().describe("File with its key (PEM)."),
    selfSigned: z.boolean().optional().describe("Let the server make a certificate, which `viv up` shows the fingerprint of."),
    behindProxy: z
      .string()
      .max(300)
      .optional()
      .describe("A proxy or tunnel does TLS: the address that browsers use, such as `https://viv.example.com`."),
    url: z.string().max(300).optional().describe("Address that browsers use, where it is not that of the certificate."),
    previews: z
      .string()
      .max(300)
      .optional()
      .describe("With TLS: addresses of previews of ports, such as `https://*.preview.example.com`, which DNS and certificate cover."),
  })
  .describe("Where the server listens besides its socket from its start on; what `viv up --listen` says goes first.");
