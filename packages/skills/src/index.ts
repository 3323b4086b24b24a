export type { ApproveSkill, SkillScriptRequest } from "./consent.ts";
export type { Skill, SkillFile, SkillWarning } from "./skill.ts";
export type { SkillTool, SkillToolCallOptions } from "./skill-tool.ts";
export type { SkillToolsOptions } from "./skill-tools.ts";
export { Skills, skillsFrom } from "./skills-from.ts";
