#include "widgets/explore/survey.h"

namespace stagewright {

LinesPicture linesOf(const ExploreQuestion& question, ExploreParameter across, std::vector<std::string> schedules)
{
    LinesPicture picture{question, across, valuesAround(question, across, 16), std::move(schedules), {}};
    picture.rows.resize(picture.values.size() * picture.schedules.size());
    return picture;
}

HeatPicture heatOf(const ExploreQuestion& question, ExploreParameter across, ExploreParameter up,
                   std::vector<std::string> schedules)
{
    HeatPicture picture{
        question, across, up, valuesAround(question, across, 14), valuesAround(question, up, 10), std::move(schedules),
        {}};
    picture.rows.resize(picture.cells() * picture.schedules.size());
    return picture;
}

ExploreQuestion HeatPicture::questionOf(std::size_t cell) const
{
    return question.with(up, valuesUp[cell / valuesAcross.size()])
        .with(across, valuesAcross[cell % valuesAcross.size()]);
}

bool HeatPicture::done(std::size_t cell) const
{
    for (std::size_t i = 0; i < schedules.size(); ++i)
        if (!row(cell, i).done) return false;
    return !schedules.empty();
}

int HeatPicture::winner(std::size_t cell) const
{
    int best = -1;
    const ExploreQuestion asked = questionOf(cell);
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        const SweepRow& one = row(cell, i);
        if (!one.good() || !one.synchronous || !overCap(one, asked).isEmpty()) continue;
        if (best < 0 || one.step < row(cell, static_cast<std::size_t>(best)).step) best = static_cast<int>(i);
    }
    return best;
}

std::vector<SweepPoint> pointsOf(const LinesPicture& picture)
{
    std::vector<SweepPoint> points;
    for (const std::string& schedule : picture.schedules)
        for (const double value : picture.values)
            points.push_back(picture.question.with(picture.across, value).point(schedule));
    return points;
}

std::vector<SweepPoint> pointsOf(const HeatPicture& picture)
{
    std::vector<SweepPoint> points;
    for (std::size_t cell = 0; cell < picture.cells(); ++cell)
        for (const std::string& schedule : picture.schedules)
            points.push_back(picture.questionOf(cell).point(schedule));
    return points;
}

} // namespace stagewright
