#include "schedules/planner/integer_program.h"

#include <mutex>

#include <dlfcn.h>
#include <fmt/format.h>

namespace stagewright {

namespace {

// The C interface of CBC 2.10, as far as it is used.
struct Cbc {
    using Model = void;
    const char* (*version)() = nullptr;
    Model* (*make)() = nullptr;
    void (*drop)(Model*) = nullptr;
    void (*load)(Model*, int columns, int rows, const int* starts, const int* indices, const double* values,
                 const double* least, const double* most, const double* cost, const double* rowLeast,
                 const double* rowMost) = nullptr;
    void (*integer)(Model*, int column) = nullptr;
    void (*set)(Model*, const char* name, const char* value) = nullptr;
    int (*solve)(Model*) = nullptr;
    int (*optimal)(Model*) = nullptr;
    int (*infeasible)(Model*) = nullptr;
    const double* (*solution)(Model*) = nullptr;
    const double* (*bestSolution)(Model*) = nullptr;
    double (*value)(Model*) = nullptr;
    bool whole = false;

    Cbc()
    {
        void* library = nullptr;
        for (const char* file : {"libCbcSolver.so.3", "libCbcSolver.so"})
            if (library == nullptr) library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return;
        whole = true;
        const auto find = [&](auto& place, const char* name) {
            place = reinterpret_cast<std::remove_reference_t<decltype(place)>>(::dlsym(library, name));
            whole = whole && place != nullptr;
        };
        find(version, "Cbc_getVersion");
        find(make, "Cbc_newModel");
        find(drop, "Cbc_deleteModel");
        find(load, "Cbc_loadProblem");
        find(integer, "Cbc_setInteger");
        find(set, "Cbc_setParameter");
        find(solve, "Cbc_solve");
        find(optimal, "Cbc_isProvenOptimal");
        find(infeasible, "Cbc_isProvenInfeasible");
        find(solution, "Cbc_getColSolution");
        find(bestSolution, "Cbc_bestSolution");
        find(value, "Cbc_getObjValue");
    }
};

const Cbc& cbc()
{
    static const Cbc loaded;
    return loaded;
}

} // namespace

bool hasIntegerSolver() { return cbc().whole; }

std::string integerSolver() { return cbc().whole ? fmt::format("CBC {}", cbc().version()) : std::string(); }

Result<std::optional<IntegerSolution>> solveInteger(const IntegerProgram& program, int seconds)
{
    const Cbc& solver = cbc();
    if (!solver.whole)
        return fail(ErrorCode::Unavailable, "COIN-OR CBC, which solves integer programs, is not installed",
                    "apt-get install coinor-libcbc3");
    const std::size_t columns = program.cost.size();
    // by column, as CBC wants it
    std::vector<std::vector<std::pair<int, double>>> terms(columns);
    std::vector<double> rowLeast, rowMost;
    for (const auto& row : program.rows) {
        for (const auto& [column, factor] : row.terms)
            terms[static_cast<std::size_t>(column)].emplace_back(static_cast<int>(rowLeast.size()), factor);
        rowLeast.push_back(row.least);
        rowMost.push_back(row.most);
    }
    std::vector<int> starts{0}, indices;
    std::vector<double> values, least(columns, 0), most(columns, 1);
    for (const auto& column : terms) {
        for (const auto& [row, factor] : column) {
            indices.push_back(row);
            values.push_back(factor);
        }
        starts.push_back(static_cast<int>(indices.size()));
    }
    static std::mutex one; // CBC's program has global state
    const std::lock_guard lock(one);
    Cbc::Model* model = solver.make();
    solver.load(model, static_cast<int>(columns), static_cast<int>(rowLeast.size()), starts.data(), indices.data(),
                values.data(), least.data(), most.data(), program.cost.data(), rowLeast.data(), rowMost.data());
    for (std::size_t column = 0; column < columns; ++column)
        if (program.whole[column]) solver.integer(model, static_cast<int>(column));
    solver.set(model, "log", "0");
    solver.set(model, "sec", std::to_string(seconds).c_str());
    solver.solve(model);
    const bool proven = solver.optimal(model) != 0, none = solver.infeasible(model) != 0;
    const double* found = proven ? solver.solution(model) : solver.bestSolution(model);
    std::optional<IntegerSolution> out;
    if (!none && found != nullptr)
        out = IntegerSolution{std::vector<double>(found, found + columns), solver.value(model), proven};
    solver.drop(model);
    if (!out && !none)
        return fail(ErrorCode::Unavailable, fmt::format("CBC found nothing within {} s", seconds),
                    "give the problem a higher cap");
    return out;
}

} // namespace stagewright
