// Prints what redocly's recommended rules find in the document that is given, one finding in a line.
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { readFileSync } from "node:fs";

const config = await createConfig({ extends: ["recommended"] });
const findings = await lintFromString({ source: readFileSync(process.argv[2], "utf8"), config });
for (const { ruleId, location } of findings) console.log(ruleId, location[0].pointer);
