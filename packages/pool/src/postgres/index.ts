export { type PostgresDirectory, postgresDirectory, type PostgresDirectoryOptions } from "./postgres-directory.ts";
