// MixedPicture: twin bars of each rank, its share of the batch and its share of the state, for three divisions side by
// side, with the limits: the rank's part of the speeds, and what of the state its memory has room for. Paints with any
// painter. GUI thread only.
#pragma once

#include <memory>

#include "schedules/survey/uneven.h"
#include "widgets/explore/cursor_picture.h"
#include "widgets/explore/survey_text.h"

namespace stagewright {

class MixedPicture : public CursorPicture {
    Q_OBJECT
public:
    explicit MixedPicture(QWidget* parent = nullptr);
    void setAnswer(std::shared_ptr<const MixedAnswer> answer, const MixedQuestion& question); // null: under way
    void setError(const QString& text);                                                       // instead of an answer

    int marks() const override; // rank by rank of the divisions in turn
    QString textOf(int mark) const override;
    TableText table() const override { return tableTextOf(answer()); }
    SurveyTable answer() const; // empty: none
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;

protected:
    QRectF markIn(const QRectF& rect, int mark) const override;

private:
    struct Place; // of a division's bars
    Place placeIn(const QRectF& rect, std::size_t division) const;
    double mostShare() const;
    void paintDivision(QPainter& painter, const QRectF& rect, std::size_t division, const Theme& theme) const;
    int ranks() const { return static_cast<int>(m_question.speeds.size()); }

    std::shared_ptr<const MixedAnswer> m_answer;
    MixedQuestion m_question;
    QString m_error;
};

} // namespace stagewright
