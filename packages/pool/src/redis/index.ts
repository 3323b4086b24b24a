export { redisDirectory, type RedisDirectoryOptions } from "./redis-directory.ts";
