// The typed blocks of a lesson file. Internal to traces/lessons.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "traces/lessons/block_fields.h"
#include "traces/lessons/lesson.h"

namespace stagewright::lessons {

class LessonBlocks {
public:
    static bool isTyped(std::string_view kind); // "check"

    // In file order: blocks belong to the preceding step, hints to the preceding check.
    Result<Block> read(const std::string& kind, const std::vector<Line>& lines, FilePlace at);
    // References between blocks.
    Result<void> finish(const Lesson& lesson) const;

    std::string path;
    Settings settings; // the lesson's

private:
    Result<Block> predict(const Fields& fields);
    Result<Block> step(const Fields& fields);
    Result<Block> check(const Fields& fields);
    Result<Block> quiz(const Fields& fields);
    Result<Block> hint(const Fields& fields);
    Result<Block> run(const Fields& fields);
    Result<Block> figure(const Fields& fields);
    Result<Block> fact(const Fields& fields);
    template <typename Kind>
    Result<Block> answer(const Fields& fields, bool wrong);
    Result<void> newId(const std::string& id, FilePlace at);
    Result<void> remarks(const Fields& fields, std::string_view key, std::vector<Remark>& out) const;

    std::map<std::string, FilePlace> m_ids;
    std::string m_lastChecked; // id of the preceding check or quiz
    int m_steps = 0;
};

} // namespace stagewright::lessons
